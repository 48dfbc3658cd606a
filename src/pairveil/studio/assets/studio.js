"use strict";
(() => {
  const working = document.getElementById("working");

  // A problem is where the reader is: the screen reader starts there.
  const problem = document.getElementById("problem");
  problem?.focus();
  // Once something was corrected, the message is about what was there before.
  if (problem) history.replaceState(null, "", location.href);  // Back shows the page, and does not send the form again
  if (problem) document.addEventListener("change", () => { problem.hidden = true; }, { once: true });

  // What takes a while says so, and cannot be pressed twice.
  document.querySelectorAll("form").forEach((form) => form.addEventListener("submit", (event) => {
    if (form.dataset.ask && !confirm(form.dataset.ask)) { event.preventDefault(); return; }
    if (form.dataset.working) {
      working.textContent = form.dataset.working;
      form.querySelectorAll("button").forEach((button) => { button.disabled = true; });
    }
  }));
  addEventListener("pageshow", () => {
    working.textContent = "";
    document.querySelectorAll("button").forEach((button) => { button.disabled = false; });
  });

  // Files go up as they are, one request each; a large one shows how far it is.
  const put = (path, file, moved) => new Promise((done, failed) => {
    const sending = new XMLHttpRequest();
    sending.open("PUT", path);
    sending.setRequestHeader("X-File-Name", encodeURIComponent(file.name));
    sending.upload.addEventListener("progress", (at) => { if (at.lengthComputable) moved(at.loaded / at.total); });
    sending.addEventListener("load", () => done({ ok: sending.status < 300, said: JSON.parse(sending.responseText) }));
    sending.addEventListener("error", failed);
    sending.send(file);
  });
  document.querySelectorAll("[data-upload]").forEach((box) => {
    const input = box.querySelector("input");
    const state = box.querySelector(".state");
    input.addEventListener("change", async () => {
      const file = input.files[0];
      if (!file) return;
      state.textContent = `Reading ${file.name} …`;
      try {
        const { ok, said } = await put(`files/${box.dataset.upload}`, file, (share) => {
          state.textContent = share < 1 ? `Receiving ${file.name}: ${Math.floor(100 * share)} %` : `Reading ${file.name} …`;
        });
        state.textContent = ok ? `Here: ${said.name}` : said.problem;
        if (ok) offer(said.columns, said.chosen);
      } catch {
        state.textContent = "The studio does not answer. Is it still running?";
      }
    });
  });

  // The header of a file fills the lists of columns; what was probably meant is chosen.
  const offer = (columns, chosen) => Object.entries(chosen).forEach(([field, value]) => {
    const list = document.getElementById(field);
    const names = columns.includes(value) || !value ? columns : [...columns, value];
    const none = list.querySelector('option[value=""]');
    list.replaceChildren(...(none && (!value || !("required" in list.dataset)) ? [none] : []), ...names.map((name) => new Option(name, name, false, name === value)));
  });

  // Pairs or classes: what the other needs is out of sight.
  const files = document.getElementById("files");
  if (files) {
    const show = () => {
      const source = files.querySelector("[name=learns_from]:checked").value;
      files.querySelectorAll("[data-source]").forEach((part) => { part.hidden = !part.dataset.source.split(" ").includes(source); });
      document.getElementById("classes").required = source === "classes";
    };
    files.addEventListener("change", show);
    show();
  }

  // A release that somebody sent: all of its files, then its page.
  const release = document.getElementById("release");
  release?.addEventListener("change", async () => {
    const state = document.getElementById("state-release");
    const send = async (path, options) => {
      const answer = await fetch(path, options);
      const said = await answer.json();
      if (!answer.ok) throw new Error(said.problem);
      return said;
    };
    try {
      state.textContent = "Reading …";
      document.getElementById("to-report").hidden = true;
      await send("read", { method: "DELETE" });
      const key = document.getElementById("signer").files[0];
      if (key) await send("read/key", { method: "PUT", body: key });
      for (const file of release.files) await send("read/file", { method: "PUT", body: file, headers: { "X-File-Name": encodeURIComponent(file.name) } });
      const found = await send("read/report", { method: "POST" });
      state.textContent = found.signature;
      document.getElementById("to-report").hidden = false;
    } catch (problem) {
      state.textContent = problem.message || "The studio does not answer. Is it still running?";
    }
  });

  // A column shows what its kind needs.
  document.querySelectorAll("[data-column]").forEach((box) => {
    const type = box.querySelector("[data-type]");
    const show = () => box.querySelectorAll("[data-for]").forEach((part) => {
      part.hidden = !part.dataset.for.split(" ").includes(type.value);
    });
    type.addEventListener("change", show);
    show();
  });

  // The slider: everything was planned beforehand, so it answers at once.
  const choice = document.getElementById("choice");
  if (choice) {
    const rows = JSON.parse(choice.dataset.rows);
    const epsilons = choice.dataset.epsilons.split(" ").map(Number);
    const at = (id) => document.getElementById(id);
    const slider = at("slider");
    const chosen = (name) => choice.querySelector(`[name=${name}]:checked`)?.value;
    const upTo = (share) => Math.min(100, Math.ceil(100 * share - 1e-9));
    const show = () => {
      const epsilon = epsilons[Number(slider.value)];
      const [unit, select] = [chosen("unit"), chosen("select")];
      const row = rows.find((one) => one.epsilon === epsilon && one.unit === unit && (!select || one.select === select));
      at("epsilon").value = String(epsilon);
      at("epsilon-shown").textContent = String(epsilon);
      slider.setAttribute("aria-valuetext", `epsilon ${epsilon}`);
      if (!row) { at("guess-words").textContent = "This choice was not planned."; return; }
      const right = upTo(row.best_guess);
      at("guess-words").textContent = `At most ${right} guesses in 100 are right. A coin gets 50.`;
      at("person-words").textContent = `For all that is known of one person the same release means epsilon ${Math.ceil(1000 * row.person_epsilon - 1e-6) / 1000} and at most ${upTo(row.person_best_guess)} right guesses in 100.${Number(choice.dataset.spent) > 0 ? " This counts this release alone; the next page counts those before it too." : ""}`;
      const known = typeof row.gain_low === "number";  // there are benchmarks of such fits
      const kept = choice.querySelector("[name=score]")?.checked ? row.scored : [row.gain_low, row.gain_high];
      at("gain").textContent = known ? `${Math.round(100 * kept[0])} to ${Math.round(100 * kept[1])} %` : "not known";
      at("gain-words").textContent = known ? `eight in ten fits ${kept === row.scored ? "to the pairs that the score leaves" : "like it"}, in our benchmarks; yours may differ` : "too few fits like it were measured";
      at("used").textContent = row.n_pairs_used.toLocaleString("en");
      at("records").textContent = row.records.replace(/^./, (first) => first.toUpperCase());
      at("kappa").textContent = `kappa ${row.kappa}: so many count together for one ${row.unit}`;
      const left = row.left;
      at("left").textContent = left >= -1e-9 ? String(Math.max(0, Math.floor(1000 * left + 1e-6) / 1000)) : "not enough";
      heads(right);
    };
    const heads = (right) => {
      const shapes = [...choice.querySelectorAll(".heads .head > *")];  // a head and shoulders for each guess
      shapes.forEach((shape, i) => {
        const guess = Math.floor(i / 2);
        shape.setAttribute("class", guess < 50 ? "as-coin" : guess < right ? "as-more" : "as-wrong");
      });
      const chart = choice.querySelector(".heads");
      chart.setAttribute("aria-label", `A hundred guesses: at most ${right} are right, a coin gets 50 right.`);
      const tips = [`50 of 100: right by tossing a coin`, `${right - 50} of 100: right because of this release, at most`, `${100 - right} of 100: wrong all the same, at least`];
      choice.querySelectorAll(".heads .head").forEach((head, i) => { head.dataset.tip = tips[i]; head.setAttribute("aria-label", tips[i]); });
    };
    choice.addEventListener("input", show);
    at("recommend").addEventListener("click", (event) => {
      const best = event.currentTarget.dataset;
      slider.value = String(epsilons.indexOf(Number(best.epsilon)));
      for (const name of ["unit", "select"]) if (best[name]) choice.querySelector(`[name=${name}][value=${best[name]}]`).checked = true;
      show();
    });
    show();
  }

  // The fit is watched; the page itself can be loaded again at any time.
  const progress = document.getElementById("progress");
  if (progress?.dataset.state === "running") {
    const look = async () => {
      try {
        const said = await (await fetch("status")).json();
        document.getElementById("bar").value = said.done;
        document.getElementById("percent").textContent = `${Math.round(100 * said.done)} %`;
        if (said.state !== "running") { location.assign("progress"); return; }
      } catch {
        document.getElementById("percent").textContent = "The studio does not answer; it can be started again and goes on.";
      }
      setTimeout(look, 700);
    };
    setTimeout(look, 400);
  }
})();
