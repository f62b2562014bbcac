// <emend-rating query-id="..." endpoint="https://ratings.example"></emend-rating>: thumbs for what a search returned. After a thumb
// down it asks why. It sends one rating. Texts are English, or Japanese where the page's language is. Styles: ::part(button),
// ::part(comment), ::part(toast).
"use strict";
(() => {
  const script = document.currentScript && document.currentScript.src;
  const home = script ? new URL(script).origin : location.origin;
  const TEXTS = {
    en: {
      group: "Rate these results", up: "Good results", down: "Bad results", why: "What was missing?", send: "Send",
      thanks: "Thank you for your feedback.", later: "Too many ratings. Please try again later.",
      failed: "That did not work. Please try again.",
    },
    ja: {
      group: "検索結果の評価", up: "良い結果", down: "悪い結果", why: "何が足りませんでしたか?", send: "送信",
      thanks: "ご協力ありがとうございます。", later: "評価が多すぎます。しばらくしてからお試しください。",
      failed: "送信できませんでした。もう一度お試しください。",
    },
  };
  const STYLE = `
    :host { display: inline-block; font: inherit; }
    [hidden] { display: none !important; }
    button { font: inherit; min-width: 2.75em; min-height: 2.75em; cursor: pointer; }
    button:focus-visible, textarea:focus-visible { outline: 3px solid #1a5fb4; outline-offset: 2px; }
    button[aria-pressed="true"] { outline: 2px solid currentColor; }
    button:disabled { cursor: default; }
    form { margin-top: .5em; }
    label { display: block; }
    textarea { font: inherit; display: block; width: 20em; max-width: 100%; margin: .25em 0; }
    [role="status"]:not(:empty) { margin-top: .5em; }
  `;

  class EmendRating extends HTMLElement {
    #state = "open"; // open, sending, sent

    connectedCallback() {
      if (this.shadowRoot) return;
      const language = (this.closest("[lang]") || document.documentElement).lang || navigator.language || "en";
      this.texts = TEXTS[language.slice(0, 2).toLowerCase()] || TEXTS.en;
      const root = this.attachShadow({ mode: "open" });
      const style = document.createElement("style");
      style.textContent = STYLE;
      const group = this.#element("div", { role: "group", "aria-label": this.texts.group });
      this.up = this.#thumb("\u{1f44d}", this.texts.up);
      this.down = this.#thumb("\u{1f44e}", this.texts.down);
      group.append(this.up, this.down);
      this.form = this.#element("form", { hidden: "" });
      const label = this.#element("label", { for: "why" });
      label.textContent = this.texts.why;
      this.why = this.#element("textarea", { id: "why", rows: "3", maxlength: "300", part: "comment" });
      const send = this.#element("button", { type: "submit", part: "button" });
      send.textContent = this.texts.send;
      this.form.append(label, this.why, send);
      this.toast = this.#element("div", { role: "status", "aria-live": "polite", part: "toast" });
      root.append(style, group, this.form, this.toast);
      this.up.addEventListener("click", () => this.#send(1, ""));
      this.down.addEventListener("click", () => this.#ask());
      this.form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.#send(-1, this.why.value.trim());
      });
      this.form.addEventListener("keydown", (event) => {
        if (event.key === "Escape") this.#close();
      });
    }

    #element(name, attributes) {
      const element = document.createElement(name);
      for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
      return element;
    }

    #thumb(text, label) {
      const button = this.#element("button", {
        type: "button", "aria-label": label, title: label, "aria-pressed": "false", part: "button",
      });
      button.textContent = text;
      return button;
    }

    #ask() {
      if (this.#state !== "open") return;
      this.down.setAttribute("aria-pressed", "true");
      this.form.hidden = false;
      this.why.focus();
    }

    #close() {
      this.form.hidden = true;
      this.down.setAttribute("aria-pressed", "false");
      this.down.focus();
    }

    #enable(enabled) {
      for (const control of this.shadowRoot.querySelectorAll("button, textarea")) control.disabled = !enabled;
    }

    async #send(rating, reason) {
      if (this.#state !== "open") return;
      this.#state = "sending";
      this.#enable(false);
      const pressed = rating > 0 ? this.up : this.down;
      pressed.setAttribute("aria-pressed", "true");
      const endpoint = (this.getAttribute("endpoint") || home).replace(/\/$/, "");
      let text = this.texts.failed;
      try {
        const answer = await fetch(`${endpoint}/v1/feedback`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          credentials: "omit",
          body: JSON.stringify({ query_id: this.getAttribute("query-id"), rating, user_reason: reason }),
        });
        if (answer.ok) {
          this.#state = "sent";
          text = this.texts.thanks;
        } else if (answer.status === 429) {
          text = this.texts.later;
        }
      } catch {
        // Nothing arrived: it may be sent again.
      }
      this.toast.textContent = text;
      if (this.#state === "sent") {
        this.form.hidden = true;
        this.dispatchEvent(new CustomEvent("emend-rated", { bubbles: true, detail: { rating } }));
        return;
      }
      this.#state = "open";
      pressed.setAttribute("aria-pressed", String(!this.form.hidden && rating < 0));
      this.#enable(true);
      (rating > 0 ? this.up : this.why).focus();
    }
  }

  if (!customElements.get("emend-rating")) customElements.define("emend-rating", EmendRating);
})();
