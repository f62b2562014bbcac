// The rating dialogs in other applications: <emend-rate-output> shows one in a frame. Within the frame this script takes the
// texts from the page around it, so that they stand in no address, and tells it the height and that somebody rated.
"use strict";
(() => {
  const mark = "emend-rate";
  const framed = document.body?.matches(".framed") && window.parent !== window;

  const within = () => {
    const tell = (message) => window.parent.postMessage({ mark, ...message }, "*");
    window.addEventListener("message", (event) => {
      if (event.source !== window.parent || event.data?.mark !== mark) return;
      for (const name of ["input", "output"]) {
        const field = document.querySelector(`.rate [name=${name}]`);
        if (!field || field.value || typeof event.data[name] !== "string") continue;
        field.value = event.data[name];
        field.readOnly = true;
      }
    });
    new ResizeObserver(() => tell({ height: document.documentElement.offsetHeight })).observe(document.documentElement);
    tell(document.querySelector("[data-done]") ? { rated: true } : { ready: true });
  };

  const own = document.currentScript && new URL(document.currentScript.src).origin;
  const style = new CSSStyleSheet();
  style.replaceSync(":host { display: block; } iframe { border: 0; width: 100%; }");

  class RateOutput extends HTMLElement {
    static observedAttributes = ["dialog", "console", "namespace", "target-id", "prompt-version", "reporter", "lang", "theme"];
    #frame = document.createElement("iframe");

    constructor() {
      super();
      const shadow = this.attachShadow({ mode: "open" });
      shadow.adoptedStyleSheets = [style];
      this.#frame.height = 480;
      shadow.append(this.#frame);
    }

    get #origin() { return new URL(this.getAttribute("console") || own).origin; }

    #load() {
      if (!this.isConnected) return;
      const path = [this.getAttribute("namespace") || "default", "rate", this.getAttribute("dialog") || "interpret"];
      const address = new URL(`/ns/${path.map(encodeURIComponent).join("/")}`, this.#origin);
      address.searchParams.set("frame", "1");
      for (const name of ["target-id", "prompt-version", "reporter", "lang", "theme"]) {
        if (this.hasAttribute(name)) address.searchParams.set(name.replace("-", "_"), this.getAttribute(name));
      }
      this.#frame.title = this.getAttribute("label") || "Emend";
      if (this.#frame.src !== address.href) this.#frame.src = address.href;
    }

    #hear = (event) => {
      if (event.source !== this.#frame.contentWindow || event.origin !== this.#origin || event.data?.mark !== mark) return;
      const { height, ready, rated } = event.data;
      if (ready) event.source.postMessage({ mark, input: this.getAttribute("input"), output: this.getAttribute("output") }, this.#origin);
      if (Number.isFinite(height)) this.#frame.height = Math.min(Math.max(Math.ceil(height), 80), 4000);
      if (rated) this.dispatchEvent(new CustomEvent("emend-rated", { bubbles: true, composed: true, detail: { targetId: this.getAttribute("target-id") } }));
    };

    connectedCallback() { window.addEventListener("message", this.#hear); this.#load(); }
    disconnectedCallback() { window.removeEventListener("message", this.#hear); }
    attributeChangedCallback() { this.#load(); }
  }

  if (framed) within();
  else if (!customElements.get("emend-rate-output")) customElements.define("emend-rate-output", RateOutput);
})();
