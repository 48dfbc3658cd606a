"""One of two processes of a fit; run by test_ranks.py. The first makes the same fits alone before."""

import copy
import json
import sys
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    import torch
    from torch import distributed as dist

    from pairveil import PrivacyLedger
    from pairveil.deep import PrivateMetricTrainer, PrivateSteps
    from pairveil.deep import trainer as module
    from pairveil.errors import InputError

    rank, meeting, out, ledger_file, how = int(sys.argv[1]), *sys.argv[2:6]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).astype(np.float32)
    pairs, y = np.arange(200).reshape(100, 2), rng.choice([1, -1], 100)

    def fits(ledger_at):
        sums = []
        for rate in (1.0, 0.3):
            ledger = PrivacyLedger(epsilon=100.0, delta=1e-3, path=ledger_at)
            trainer = PrivateMetricTrainer(
                net, epsilon=8.0, n_steps=3, sample_rate=rate, micro_batch=16,
                random_state=5, accountant=ledger,
            )  # fmt: skip
            trainer.fit(pairs, y, X, on_answer=lambda query, statistic, noisy: sums.append(noisy))
        return np.array(sums)

    def kept(limit, file):
        """Stopped after some of four answers, or resumed."""
        sums = []

        def stop(query, statistic, noisy):
            sums.append(noisy)
            if len(sums) == limit:
                np.save(out, np.array(sums))
                sys.exit()

        ledger = PrivacyLedger(epsilon=100.0, delta=1e-3, path=ledger_file)
        made = PrivateMetricTrainer(net, epsilon=8.0, n_steps=4, micro_batch=16, accountant=ledger)
        made.fit(pairs, y, X, on_answer=stop, checkpoint=file)
        return np.array(sums)

    def refused():
        """What is said where one process has something else than the other; a ledger is not charged."""
        there, own = PrivacyLedger(epsilon=100.0, delta=1e-3, path=ledger_file), rank == 1
        usual = {"epsilon": 8.0, "n_steps": 1, "micro_batch": 16, "random_state": 5}
        other = copy.deepcopy(net)
        with torch.no_grad():
            other[0].bias += 1
        X2, y2 = X.copy(), y.copy()
        X2[0], y2[0] = 9, -y2[0]
        differing = {
            "shard": ((pairs[rank::2], y[rank::2], X), {}, {}),
            "labels": ((pairs, y2, X), {}, {}),
            "data": ((pairs, y, X2), {}, {}),
            "weights": ((pairs, y, X), {}, {"module": other}),
            "clip": ((pairs, y, X), {"max_grad_norm": 5.0}, {}),
            "buckets": ((pairs, y, X), {"micro_batch": 32}, {}),
            "unit": ((pairs, y, X), {"unit": "person"}, {}),
            "noise": ((pairs, y, X), {"random_state": None}, {}),
            "ledger": ((pairs, y, X), {}, {}),
        }
        said = {}
        for what, (given, options, changed) in differing.items():
            if not own and what != "shard":
                given, options, changed = (pairs, y, X), {}, {}
            ledger = None if what == "ledger" and not own else there
            given_net = changed.get("module", net)
            made = PrivateMetricTrainer(given_net, **{**usual, **options}, accountant=ledger)
            try:
                if what == "data":
                    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
                    PrivateSteps(made, sgd, made.prepare(*given))
                else:
                    made.fit(*given)
            except InputError as problem:
                said[what] = str(problem)
        return said

    if how == "uneven":  # rows stand alone on the first device, and on no other
        module.rows_stand_alone = lambda network: False
    if how != "kept" and rank == 0:
        np.save(out + "-alone", fits(None))
    if how == "uneven":
        module.rows_stand_alone = lambda network: rank == 0
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    if how == "even":
        Path(f"{out}-refused.json").write_text(json.dumps(refused()))
    np.save(out, kept(int(sys.argv[6]), sys.argv[7]) if how == "kept" else fits(ledger_file))
