"use strict";
// The page asks for itself again whenever the server says that the log has grown.
(() => {
  const state = document.getElementById("state");
  const address = document.body.dataset.news;
  const shown = () => document.getElementById("live");
  let source = null;
  let asks = false;
  let again = false;

  const say = (word, kind) => {
    if (state && state.textContent !== word) {
      state.textContent = word;
      state.className = `live ${kind}`;
    }
  };
  const refresh = () => {
    if (document.querySelector("input[type=range]:active")) {
      // Not under the reader's hand.
      window.setTimeout(refresh, 300);
    } else if (asks) {
      again = true;
    } else if (shown() && shown().hasAttribute("hx-get")) {
      asks = true;
      htmx.trigger(document.body, "news");
    }
  };
  const listen = () => {
    if (!address || source || document.hidden) return;
    source = new EventSource(address);
    source.addEventListener("open", () => say("live", "on"));
    source.addEventListener("news", (event) => {
      say("live", "on");
      if (shown() && shown().dataset.seq !== event.data) refresh();
    });
    source.addEventListener("error", () => say("not connected", "off"));
  };
  // A page in the background would hold one of the few connections that a browser makes to one server.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && source) {
      source.close();
      source = null;
      say("paused", "");
    }
    listen();
  });
  // What the reader has opened stays open.
  let opened = [];
  const names = () => Array.from(document.querySelectorAll("#live details"));
  document.body.addEventListener("htmx:beforeSwap", () => {
    opened = names().map((each) => each.open);
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    names().forEach((each, number) => {
      if (opened[number]) each.open = true;
    });
  });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    if (event.target !== shown() && event.detail.target?.id !== "live") return;
    asks = false;
    if (!event.detail.successful) say("not connected", "off");
    if (again) {
      again = false;
      refresh();
    }
  });
  listen();
})();
