// What pages do beyond links and forms: keys, changes shown as they happen, times in the reader's zone, and typed text that
// outlives a page. Everything else works without this.
"use strict";
(() => {
  const isTyping = (element) => element && (element.matches("textarea, select, [contenteditable]") || element.matches("input:not([type=checkbox]):not([type=radio])"));

  // Times in the reader's own zone.
  const clock = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  const localise = (root) => {
    for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      time.title = time.textContent;
      time.textContent = clock.format(at);
      time.dataset.local = "";
    }
  };

  // On a narrow screen a row is a card, whose values have the labels of the columns.
  const stack = (root) => {
    for (const table of root.querySelectorAll(".scroll > table:not(.stacked)")) {
      const heads = [...table.querySelectorAll("thead th")].map((head) => head.querySelector(".sr") ? "" : head.textContent.trim());
      table.classList.add("stacked");
      table.setAttribute("role", "table");
      for (const part of table.querySelectorAll("thead, tbody")) part.setAttribute("role", "rowgroup");
      for (const head of table.querySelectorAll("th")) head.setAttribute("role", "columnheader");
      for (const row of table.querySelectorAll("tr")) {
        row.setAttribute("role", "row");
        [...row.cells].forEach((cell, at) => {
          if (cell.matches("td")) cell.setAttribute("role", "cell");
          if (heads[at] && cell.matches("td")) cell.dataset.label = heads[at];
        });
      }
    }
  };

  // Typed text is kept for this tab until its form has been sent and answered.
  const draftKey = (field) => `draft ${new URL(field.form.action, location.href).pathname} ${field.name}`;
  const isKept = (field) => field.form && field.name && field.matches("textarea, input[type=text]") && field.form.method === "post" && !field.matches("[data-secret]");
  document.addEventListener("input", (event) => {
    if (!isKept(event.target)) return;
    event.target.form.setAttribute("hx-morph-skip", "");
    sessionStorage.setItem(draftKey(event.target), event.target.value);
  });
  const restore = (root) => {
    for (const field of root.querySelectorAll("form[method=post] textarea, form[method=post] input[type=text]")) {
      if (!isKept(field)) continue;
      // The page asks about what it put there in place of what was typed.
      if (field.matches("[data-asked]")) sessionStorage.removeItem(draftKey(field));
      const draft = sessionStorage.getItem(draftKey(field));
      if (draft === null || draft === field.value) continue;
      field.value = draft;
      field.form.setAttribute("hx-morph-skip", "");
      field.closest("details")?.setAttribute("open", "");
    }
  };
  let isSending = false;
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    // One press is one decision.
    if (isSending) { event.preventDefault(); return; }
    isSending = true;
    sessionStorage.setItem("sent", new URL(form.action, location.href).pathname);
  });
  window.addEventListener("pageshow", () => { isSending = false; });
  const forgetSent = () => {
    const sent = sessionStorage.getItem("sent");
    sessionStorage.removeItem("sent");
    if (!sent || !document.querySelector("[data-done]")) return;
    const prefix = `draft ${sent} `;
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(prefix)) sessionStorage.removeItem(key);
  };

  // Keys press what says so.
  const keyed = (key) => [...document.querySelectorAll("[data-key]")].find((element) => element.dataset.key === key && element.offsetParent !== null);
  const help = () => {
    const dialog = document.querySelector("dialog.keys");
    if (!dialog) return;
    const list = dialog.querySelector("[data-keys]");
    list.replaceChildren();
    for (const element of document.querySelectorAll("[data-key]")) {
      const [key, name] = [document.createElement("dt"), document.createElement("dd")];
      key.textContent = element.dataset.key;
      name.textContent = element.dataset.keyLabel ?? element.textContent.replace(/\s+/g, " ").trim();
      list.append(key, name);
    }
    dialog.showModal();
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && isTyping(document.activeElement)) { document.activeElement.blur(); return; }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && document.activeElement?.form) {
      event.preventDefault();
      // Where there are several, which one is meant is said by pressing it.
      const buttons = [...document.activeElement.form.elements].filter((element) => element.type === "submit" && !element.disabled);
      if (buttons.length === 1) document.activeElement.form.requestSubmit(buttons[0]);
      return;
    }
    // Who typed in a form is still in it where the tab key led on: what comes next is meant for a field.
    if (document.activeElement?.closest("form[hx-morph-skip]")) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(document.activeElement) || document.querySelector("dialog[open]")) return;
    if (event.key === "?") { event.preventDefault(); help(); return; }
    const element = keyed(event.key);
    if (!element) return;
    event.preventDefault();
    element.closest("details")?.setAttribute("open", "");
    if (element.matches("textarea, input:not([type=checkbox]), select")) { element.focus(); element.select?.(); } else element.click();
  });

  // What changes elsewhere is shown as it happens. One tab follows for all: browsers open few connections to one host.
  let stale = false;
  // Who types or has just decided keeps the page as it is: nothing may move under their fingers.
  const isBusy = () => isSending || (isTyping(document.activeElement) && document.activeElement.closest("#live") !== null);
  document.addEventListener("htmx:before:swap", (event) => {
    const status = event.detail?.ctx?.response?.status ?? 200;
    // What is shown stays where there is nothing to show in its place.
    if (status === 401) { event.preventDefault(); document.body.dataset.ended = ""; }
    else if (status >= 500) { event.preventDefault(); isAway(); setTimeout(soon, 5000); }
    else if (isBusy()) { event.preventDefault(); stale = true; }
    else isBack();
  });
  const isAway = () => {
    if ("away" in document.body.dataset) return;
    document.body.dataset.away = "";
    const since = document.querySelector("[data-since]");
    const time = new Intl.DateTimeFormat(document.documentElement.lang, { timeStyle: "short" }).format(new Date());
    if (since) since.textContent = document.documentElement.lang === "ja" ? `（${time} から）` : ` since ${time}`;
  };
  const isBack = () => { delete document.body.dataset.away; };
  document.addEventListener("focusout", () => { if (stale) soon(); });
  let timer = 0;
  const refresh = () => {
    if (!document.querySelector("#live")) return;
    // What went wrong stays until somebody has read it.
    if (document.querySelector("#live [role=alert]")) return;
    if (document.visibilityState !== "visible" || isBusy()) { stale = true; return; }
    stale = false;
    htmx.ajax("GET", document.body.dataset.here, { target: "#live", select: "#live", swap: "outerMorph" });
  };
  const soon = () => { clearTimeout(timer); timer = setTimeout(refresh, 80); };
  document.addEventListener("visibilitychange", () => { if (stale) soon(); });
  const handle = (name) => {
    if (name === "away") isAway();
    else if (name === "back") { isBack(); soon(); }
    else if (name === "full") document.body.dataset.full = "";
    else if (name === "open") { delete document.body.dataset.full; soon(); }
    else if (name === "queue" || name === "log" || name === "resync" || name === "ended") soon();
  };
  let following = null;
  const follow = (address) => {
    if (following === address) return;
    following = address;
    const channel = new BroadcastChannel(`emend ${address}`);
    channel.onmessage = (event) => handle(event.data);
    const open = () => {
      const source = new EventSource(address);
      const tell = (name) => { channel.postMessage(name); handle(name); };
      for (const name of ["queue", "log", "resync", "away", "back", "ended"]) source.addEventListener(name, () => tell(name));
      source.addEventListener("ended", () => source.close());
      let [wasLost, isFull] = [false, false];
      source.addEventListener("full", () => { isFull = true; tell("full"); });
      source.onerror = () => { if (!isFull) { wasLost = true; tell("away"); } };
      source.addEventListener("open", (event) => {
        // The connection alone says nothing: what follows may be that there is no room.
        if (!("data" in event)) return;
        if (isFull) { isFull = false; tell("open"); }
        if (wasLost) { wasLost = false; tell("back"); }
      });
    };
    if (navigator.locks) navigator.locks.request(`emend ${address}`, () => { open(); return new Promise(() => {}); });
    else open();
  };

  // An open item says so again while it is looked at.
  const renew = () => {
    const form = document.querySelector("form[data-renew]");
    if (form && document.visibilityState === "visible") fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) }).catch(() => {});
  };
  setInterval(renew, 20000);

  const begin = (root) => {
    localise(root);
    stack(root);
    restore(root);
    const address = document.body.dataset.live;
    if (address) follow(address);
    for (const select of root.querySelectorAll("select[data-submit]")) {
      if (select.dataset.bound) continue;
      select.dataset.bound = "";
      select.addEventListener("change", () => select.form.requestSubmit());
    }
    root.querySelector("[data-focus]:not([data-focused])")?.focus();
  };
  document.addEventListener("htmx:after:swap", () => begin(document));
  document.addEventListener("DOMContentLoaded", () => { forgetSent(); begin(document); });
  document.addEventListener("click", (event) => { if (event.target.matches("dialog.keys button")) event.target.closest("dialog").close(); });
})();
