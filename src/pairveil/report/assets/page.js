"use strict";
(() => {
  // Tabs: built here, so that without this script every panel is simply on the page.
  document.querySelectorAll("[data-tabs]").forEach((box, n) => {
    const panels = [...box.querySelectorAll(":scope > .panel")];
    const list = document.createElement("div");
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-label", box.dataset.tabs);
    const buttons = panels.map((panel, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = panel.dataset.label;
      button.id = `tab-${n}-${i}`;
      panel.id = `panel-${n}-${i}`;
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", panel.id);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", button.id);
      button.addEventListener("click", () => show(i));
      list.append(button);
      return button;
    });
    const show = (chosen) => panels.forEach((panel, i) => {
      panel.hidden = i !== chosen;
      buttons[i].setAttribute("aria-selected", String(i === chosen));
      buttons[i].tabIndex = i === chosen ? 0 : -1;
    });
    list.addEventListener("keydown", (event) => {
      const now = buttons.indexOf(document.activeElement);
      const next = step(event.key, now, buttons.length);
      if (next === null) return;
      event.preventDefault();
      show(next);
      buttons[next].focus();
    });
    box.prepend(list);
    box.classList.add("live");
    show(0);
  });

  function step(key, now, count) {
    if (key === "ArrowRight" || key === "ArrowDown") return (now + 1) % count;
    if (key === "ArrowLeft" || key === "ArrowUp") return (now - 1 + count) % count;
    if (key === "Home") return 0;
    if (key === "End") return count - 1;
    return null;
  }

  // Tooltips, by pointer and by keyboard; Escape puts them away.
  const tip = document.getElementById("tip");
  let said = null;
  const hide = () => { tip.hidden = true; said = null; };
  const say = (mark) => {
    tip.textContent = mark.dataset.tip;
    tip.hidden = false;
    said = mark;
    const at = mark.getBoundingClientRect();
    const own = tip.getBoundingClientRect();
    const x = Math.min(Math.max(at.left + at.width / 2 - own.width / 2, 8), innerWidth - own.width - 8);
    const above = at.top - own.height - 8;
    tip.style.left = `${x}px`;
    tip.style.top = `${above > 4 ? above : at.bottom + 8}px`;
  };
  document.querySelectorAll("svg.chart").forEach((chart) => {
    const marks = [...chart.querySelectorAll(".mark")];
    if (marks.length === 0) return;
    marks[0].setAttribute("tabindex", "0");
    marks.forEach((mark) => {
      // A pointer that rests says nothing when the page scrolls beneath it; nobody puts away another's words.
      const leave = () => { if (said === mark) hide(); };
      mark.addEventListener("pointermove", () => { if (said !== mark) say(mark); });
      mark.addEventListener("pointerleave", leave);
      mark.addEventListener("focus", () => say(mark));
      mark.addEventListener("blur", leave);
    });
    chart.addEventListener("keydown", (event) => {
      const now = marks.indexOf(document.activeElement);
      const next = now < 0 ? null : step(event.key, now, marks.length);
      if (next === null) return;
      event.preventDefault();
      marks[now].setAttribute("tabindex", "-1");
      marks[next].setAttribute("tabindex", "0");
      marks[next].focus();
    });
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  // Focus itself may scroll the page, so the words move with their mark instead of vanishing.
  addEventListener("scroll", () => { if (said) say(said); }, { passive: true });

  // On paper the exact words stand open; the numbers behind charts stay on the screen.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.exact:not([open])")];
    opened.forEach((box) => { box.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((box) => { box.open = false; }));
})();
