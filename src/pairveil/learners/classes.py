"""Learning from people with classes: what learners that can do it share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import ArrayLike

from pairveil.engine.plan import Recipe
from pairveil.errors import InputError
from pairveil.learners.grouped import grouped_people, refuse_together
from pairveil.learners.material import Material, material_of_people, standing_together
from pairveil.learners.named_people import ids_of, without_ids
from pairveil.learners.parameters import check_bound, check_common, plain_parameters
from pairveil.learners.preparing import Prepared, prepare
from pairveil.learners.raw_rows import RawRows
from pairveil.privacy.certificate import Certificate

if TYPE_CHECKING:
    from pairveil.learners.base import PrivateLearner as _Learner
else:
    _Learner = object


class LearnsFromClasses(_Learner):
    """``fit_classes`` and what belongs to it, for a `pairveil.learners.base.PrivateLearner`.

    A learner writes `_class_recipe`.
    """

    learns_from: ClassVar[tuple[str, ...]] = ("pairs", "classes")

    classes_: tuple[Any, ...]

    def _keep(self, model: Any, prepared: Prepared) -> None:
        super()._keep(model, prepared)
        self.__dict__.pop("classes_", None)
        if prepared.material.classes is not None:
            self.classes_ = prepared.material.classes

    def _class_recipe(self, given: Any, people: Material) -> tuple[Recipe, Material]:
        """What is asked, and of which records, from plain parameters and what is public of people."""
        raise NotImplementedError

    def prepare_classes(
        self,
        X: Any,
        y: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        groups: Any = "auto",
        *,
        ids: ArrayLike | None = None,
        together: ArrayLike | None = None,
    ) -> Prepared:
        """All of a fit that comes before its noise: records, costs, plan and certificate.

        Parameters
        ----------
        X, y, classes, groups, ids, together
            As for `fit_classes`.

        Returns
        -------
        Prepared
            Give it to ``fit`` in place of pairs; it spends nothing by itself.
        """
        given = plain_parameters(self)
        check_bound("data_norm", given.data_norm)
        if ids is None:  # a table may be sorted by class: names say who stands where, rows do not
            ids = ids_of(X)
        read = RawRows.of(self).people(without_ids(X))
        people = material_of_people(given, read, y, classes, ids)
        if together is not None:
            people = standing_together(people, together)
        check_common(given)
        self._check(given, people.used.n_features)
        if isinstance(groups, str):
            if groups != "auto":
                raise InputError("groups must be 'auto', a size, or each person's group number")
            recipe, material = self._class_recipe(given, people)
        else:
            refuse_together(together)
            material = grouped_people(given, people, groups)
            recipe = self._group_recipe(given, material)
        return prepare(recipe, given, material, self._noise())

    def certify_classes(
        self,
        X: Any,
        y: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        groups: Any = "auto",
        *,
        ids: ArrayLike | None = None,
        together: ArrayLike | None = None,
    ) -> Certificate | None:
        """The certificate that `fit_classes` would issue. Draws no noise and spends nothing."""
        return self.prepare_classes(X, y, classes, groups, ids=ids, together=together).certificate

    def fit_classes(
        self,
        X: Any,
        y: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        groups: Any = "auto",
        *,
        ids: ArrayLike | None = None,
        together: ArrayLike | None = None,
        **watching: Any,
    ) -> Self:
        """Learn from people with one class each, and issue the certificate.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n, n_features), or People
            One row a person; how many there are is public.
        y : array of shape (n,)
            Each person's class. Somebody whose class is not in the list contributes nothing.
        classes : sequence
            The public list of classes, at least two. None reads it off ``y``, which would show a class of
            one person: the certificate says so and is not for release.
        groups : 'auto', int, or integer array of shape (n,)
            What a record is. 'auto': statistics of people or pairs, by a public rule in the numbers of
            people, columns and classes and in epsilon (groups told less wherever they were measured). A
            size: disjoint groups of so many people, dealt without looking at anything. An array: each
            person's group, -1 for none; it must be public.
        ids : array of shape (n,), optional
            Public names of the people, each once; by default a table's text index or text column 'id'. People
            are brought into their order; without ids into the order of their rows, which must then not depend
            on anything private.
        together : array of shape (n,), optional
            A public value of each person: a household, a site. People with equal values change together, and
            the unit 'person' covers all of them; somebody without one stands alone.
        **watching
            ``on_step``, ``on_answer``, ``checkpoint`` and ``keep_checkpoint`` as for ``fit``.

        Returns
        -------
        self
        """
        prepared = self.prepare_classes(X, y, classes, groups, ids=ids, together=together)
        return self.fit(prepared, **watching)
