// <emend-rating query-id="..." endpoint="https://ratings.example"></emend-rating>: thumbs for what a search returned. A thumb is sent
// at once. After a thumb down it asks why; a comment replaces the rating. Another query-id starts anew. Texts are English, or
// Japanese where the page's language is. Styles: ::part(button), ::part(comment), ::part(toast).
"use strict";
(() => {
  const script = document.currentScript && document.currentScript.src;
  const home = script ? new URL(script).origin : location.origin;
  const TEXTS = {
    en: {
      group: "Rate these results", up: "Good results", down: "Bad results", why: "What was missing?", send: "Send",
      thanks: "Thank you for your feedback.", commented: "Thank you, your comment was added.", later: "Too many ratings. Please try again later.",
      failed: "That did not work. Please try again.",
    },
    ja: {
      group: "検索結果の評価", up: "良い結果", down: "悪い結果", why: "何が足りませんでしたか?", send: "送信",
      thanks: "ご協力ありがとうございます。", commented: "コメントを受け付けました。ありがとうございます。", later: "評価が多すぎます。しばらくしてからお試しください。",
      failed: "送信できませんでした。もう一度お試しください。",
    },
  };
  const STYLE = `
    :host { display: inline-block; font: inherit; }
    [hidden] { display: none !important; }
    button { font: inherit; min-width: 2.75em; min-height: 2.75em; cursor: pointer; }
    button:focus-visible, textarea:focus-visible { outline: 3px solid #1a5fb4; outline-offset: 2px; }
    button[aria-pressed="true"] { outline: 2px solid currentColor; }
    button:disabled, button[aria-disabled="true"] { cursor: default; }
    svg { display: block; width: 1.5em; height: 1.5em; margin: auto; fill: none; stroke: currentColor; stroke-width: 1.75; stroke-linejoin: round; }
    button[aria-pressed="true"] svg { fill: currentColor; }
    form { margin-top: .5em; }
    label { display: block; }
    textarea { font: inherit; display: block; width: 20em; max-width: 100%; margin: .25em 0; }
    [role="status"]:not(:empty) { margin-top: .5em; }
  `;

  // A thumb up in a square of 24; turned for a thumb down.
  const THUMB = "M3 10.5h3.5V21H3Z M6.5 19.5V11l4-8c1.9 0 2.9 1.3 2.6 3l-.6 3.5H19a2 2 0 0 1 2 2.4l-1.3 6.5a2 2 0 0 1-2 1.6H8.5Z";

  class EmendRating extends HTMLElement {
    static observedAttributes = ["query-id"];
    // What becomes of the rating of one query. state: open, sending, stored (a comment may follow), over. Posts follow each
    // other, so that the comment is the newer rating.
    #rated;

    connectedCallback() {
      if (this.shadowRoot) return;
      const language = (this.closest("[lang]") || document.documentElement).lang || navigator.language || "en";
      this.texts = TEXTS[language.slice(0, 2).toLowerCase()] || TEXTS.en;
      const root = this.attachShadow({ mode: "open" });
      const style = document.createElement("style");
      style.textContent = STYLE;
      const group = this.#element("div", { role: "group", "aria-label": this.texts.group });
      this.up = this.#thumb("", this.texts.up);
      this.down = this.#thumb("rotate(180 12 12)", this.texts.down);
      group.append(this.up, this.down);
      this.form = this.#element("form", { hidden: "" });
      const label = this.#element("label", { for: "why" });
      label.textContent = this.texts.why;
      this.why = this.#element("textarea", { id: "why", rows: "3", maxlength: "300", part: "comment" });
      this.submit = this.#element("button", { type: "submit", part: "button" });
      this.submit.textContent = this.texts.send;
      this.form.append(label, this.why, this.submit);
      this.toast = this.#element("div", { role: "status", "aria-live": "polite", part: "toast" });
      root.append(style, group, this.form, this.toast);
      this.up.addEventListener("click", () => this.#rate(1));
      this.down.addEventListener("click", () => this.#rate(-1));
      this.form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.#comment();
      });
      this.form.addEventListener("keydown", (event) => {
        if (event.key === "Escape") this.#close();
      });
      this.#begin();
    }

    attributeChangedCallback(name, before, now) {
      if (!this.shadowRoot || before === now) return;
      // What was typed and not sent is nobody's but its writer's.
      this.#begin();
    }

    #begin() {
      this.#rated = { queryId: this.getAttribute("query-id"), state: "open", commenting: false, posts: Promise.resolve() };
      this.form.hidden = true;
      this.why.value = "";
      this.toast.textContent = "";
      this.#show(0, true);
      this.#enable(true);
    }

    #element(name, attributes, namespace = "http://www.w3.org/1999/xhtml") {
      const element = document.createElementNS(namespace, name);
      for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
      return element;
    }

    #thumb(transform, label) {
      const button = this.#element("button", {
        type: "button", "aria-label": label, title: label, "aria-pressed": "false", part: "button",
      });
      const svg = "http://www.w3.org/2000/svg";
      const picture = this.#element("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg);
      picture.append(this.#element("path", { d: THUMB, transform }, svg));
      button.append(picture);
      return button;
    }

    // Which thumb is pressed, if any, and whether one may be. A button that is not disabled keeps the focus.
    #show(rating, isOpen) {
      for (const [button, value] of [[this.up, 1], [this.down, -1]]) {
        button.setAttribute("aria-pressed", String(rating === value));
        button.setAttribute("aria-disabled", String(!isOpen && rating !== value));
      }
    }

    #enable(isEnabled) {
      this.why.disabled = this.submit.disabled = !isEnabled;
    }

    #ask() {
      this.form.hidden = false;
      this.why.focus();
    }

    #close() {
      this.form.hidden = true;
      this.down.focus();
    }

    async #rate(rating) {
      const rated = this.#rated;
      if (rated.state === "stored" && rating < 0) this.#ask();
      if (rated.state !== "open" || rated.commenting) return;
      rated.state = "sending";
      this.#show(rating, false);
      if (rating < 0) this.#ask();
      const said = await this.#post(rated, rating, "");
      // The element is for other results by now, or a comment was sent and says what became of both.
      if (rated !== this.#rated) return;
      rated.state = said !== "thanks" ? "open" : rating < 0 ? "stored" : "over";
      if (rated.commenting) return;
      this.toast.textContent = this.texts[said];
      if (rated.state !== "open") return;
      this.#show(0, true);
      if (rating > 0) this.up.focus();
    }

    async #comment() {
      const rated = this.#rated;
      const reason = this.why.value.trim();
      if (rated.commenting) return;
      if (!reason) {
        this.#close();
        if (rated.state === "open") this.#rate(-1);
        return;
      }
      rated.commenting = true;
      this.#enable(false);
      this.#show(-1, false);
      const said = await this.#post(rated, -1, reason);
      if (rated !== this.#rated) return;
      if (said === "thanks") {
        rated.state = "over";
        this.toast.textContent = this.texts.commented;
        this.#close();
        return;
      }
      rated.commenting = false;
      this.toast.textContent = this.texts[said];
      this.#show(rated.state === "stored" ? -1 : 0, rated.state === "open");
      this.#enable(true);
      this.why.focus();
    }

    // Sends a rating after those before it, and answers which text says what became of it.
    #post(rated, rating, reason) {
      const endpoint = (this.getAttribute("endpoint") || home).replace(/\/$/, "");
      const send = async () => {
        try {
          const answer = await fetch(`${endpoint}/v1/feedback`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            credentials: "omit",
            body: JSON.stringify({ query_id: rated.queryId, rating, user_reason: reason }),
          });
          if (!answer.ok) return answer.status === 429 ? "later" : "failed";
        } catch {
          // Nothing arrived: it may be sent again.
          return "failed";
        }
        const detail = { rating, queryId: rated.queryId, comment: reason };
        this.dispatchEvent(new CustomEvent("emend-rated", { bubbles: true, detail }));
        return "thanks";
      };
      rated.posts = rated.posts.then(send);
      return rated.posts;
    }
  }

  if (!customElements.get("emend-rating")) customElements.define("emend-rating", EmendRating);
})();
