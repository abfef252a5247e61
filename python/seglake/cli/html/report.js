"use strict";
// What the page shows without it stays as it is: this adds choosing in step, keys, and buttons. Text goes in by textContent alone.
(() => {
  const ROW = 16, ROWS = 24;
  const kept = JSON.parse(document.getElementById("bytes").textContent);
  const status = document.getElementById("status");
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const make = (name, text, kind) => {
    const own = document.createElement(name);
    if (text !== undefined) own.textContent = text;
    if (kind) own.className = kind;
    return own;
  };
  const number = (own) => own.toLocaleString("en");
  const grids = new Map();

  // One range is chosen at a time: in the maps, in the tables and in the bytes.
  const choose = (start, end, file, said) => {
    all("tr.on", file).forEach((row) => row.classList.remove("on"));
    all("tr[data-start]", file).forEach((row) => {
      const own = [Number(row.dataset.start), Number(row.dataset.end)];
      if (own[0] < end && own[1] > start) row.classList.add("on");
    });
    all("svg.map", file).forEach((map) => mark(map, start, end));
    all("details.damage", file).forEach((damage) => grids.get(damage.id)?.show(start, end));
    status.textContent = `bytes ${number(start)} to ${number(end)}${said ? ": " + said : ""}`;
  };

  const mark = (map, start, end) => {
    const cell = Number(map.dataset.cell), first = Number(map.dataset.start);
    const from = Math.max(Math.floor((start - first) / cell), 0);
    const to = Math.min(Math.ceil((Math.min(end, Number(map.dataset.end)) - first) / cell), from + 4096);
    let path = "";
    for (let at = from; at < to; at++) path += `M${74 + (at % 256) * 4} ${16 + Math.floor(at / 256) * 26}h4v19h-4z`;
    map.querySelector(".chosen").setAttribute("d", path);
  };

  const fileOf = (own) => own.closest(".file");
  const nameOf = (row) => row.querySelector("th")?.textContent ?? "";

  all("tr[data-start]").forEach((row) => {
    const go = () => choose(Number(row.dataset.start), Number(row.dataset.end), fileOf(row), nameOf(row));
    row.addEventListener("click", go);
    row.addEventListener("focus", go);
  });

  all("svg.map").forEach((map) => {
    map.addEventListener("click", (event) => {
      const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
      const row = Math.floor((place.y - 16) / 26), column = Math.floor((place.x - 74) / 4);
      if (row < 0 || column < 0 || column > 255) return;
      const cell = Number(map.dataset.cell), start = Number(map.dataset.start) + (row * 256 + column) * cell;
      if (start >= Number(map.dataset.end)) return;
      const file = fileOf(map);
      const hit = all("details.damage", file).find((own) => Number(own.dataset.start) < start + cell && Number(own.dataset.end) > start);
      if (hit) hit.open = true;
      choose(start, start + cell, file, hit ? hit.querySelector("h3").textContent : "");
    });
  });

  const decode = (text) => Uint8Array.from(atob(text), (own) => own.charCodeAt(0));

  class Grid {
    constructor(place, own) {
      this.windows = own.windows.map(([at, text]) => [at, decode(text)]);
      this.states = own.states;
      this.place = place;
      this.chosen = [0, 0];
      this.go(Number(place.closest("details").dataset.start));
      this.table = make("table", undefined, "grid");
      this.table.setAttribute("role", "grid");
      this.table.setAttribute("aria-label", "Bytes");
      const bar = make("p");
      for (const [said, step] of [["earlier", -ROWS], ["later", ROWS]]) {
        const button = make("button", said);
        button.type = "button";
        button.addEventListener("click", () => this.move(this.at + step * ROW));
        bar.append(button, " ");
      }
      const box = make("div", undefined, "wide"), screen = make("div", undefined, "on-screen");
      box.append(this.table);
      screen.append(box, bar);
      // Paper has no buttons: it gets all that is there without a script.
      [...place.children].forEach((dump) => dump.classList.add("on-paper"));
      place.append(screen);
      this.table.addEventListener("keydown", (event) => this.key(event));
      this.table.addEventListener("click", (event) => {
        const at = event.target.dataset.at;
        if (at === undefined) return;
        choose(Number(at), Number(at) + 1, fileOf(place), "one byte");
        this.draw(Number(at));
      });
      this.draw();
    }
    byte(at) {
      for (const [start, own] of this.windows) if (at >= start && at < start + own.length) return own[at - start];
      return undefined;
    }
    state(at) {
      const own = this.states.find(([start, end]) => at >= start && at < end);
      return own ? own[2] : "S";
    }
    go(start) {
      this.at = Math.max(Math.floor(start / ROW) * ROW - 4 * ROW, this.windows[0][0]);
    }
    move(at) {
      const [first] = this.windows[0], [last, own] = this.windows[this.windows.length - 1];
      this.at = Math.max(first, Math.min(at, Math.floor((last + own.length - 1) / ROW) * ROW));
      this.draw();
    }
    show(start, end) {
      this.chosen = [start, end];
      const page = this.at <= start && start < this.at + ROWS * ROW;
      if (this.byte(start) !== undefined && !page) this.go(start);
      this.draw();
    }
    draw(focus) {
      const rows = [];
      for (let at = this.at; at < this.at + ROWS * ROW; at += ROW) {
        const row = make("tr"), digits = [], text = [];
        let worst = "S", has = false;
        for (let own = at; own < at + ROW; own++) {
          const byte = this.byte(own);
          const state = this.state(own), kind = { "~": "T", "·": "unused" }[state] ?? state;
          const on = own >= this.chosen[0] && own < this.chosen[1] ? " on" : "";
          const cell = make("td", byte === undefined ? "" : byte.toString(16).padStart(2, "0"), kind + on);
          if (byte !== undefined) {
            has = true;
            if (state !== "S") worst = state;
            cell.dataset.at = own;
            cell.tabIndex = own === (focus ?? this.at) ? 0 : -1;
          }
          digits.push(cell);
          const sign = byte === undefined ? "" : byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".";
          const shown = make("td", sign, "text " + kind + on);
          if (byte !== undefined) shown.dataset.at = own;
          text.push(shown);
        }
        if (!has) continue;
        const head = make("th", `${worst} ${number(at)}`, "number");
        head.scope = "row";
        row.append(head, ...digits, make("td", " "), ...text);
        rows.push(row);
      }
      this.table.replaceChildren(...rows);
      if (focus !== undefined) this.table.querySelector(`td[data-at="${focus}"]`)?.focus();
    }
    key(event) {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -ROW, ArrowDown: ROW, PageUp: -ROW * ROWS, PageDown: ROW * ROWS }[event.key];
      const from = Number(event.target.dataset.at);
      if (step === undefined || Number.isNaN(from)) return;
      event.preventDefault();
      const to = from + step;
      if (this.byte(to) === undefined) return;
      if (to < this.at) this.at = Math.max(this.at - Math.ceil((this.at - to) / ROW) * ROW, this.windows[0][0]);
      if (to >= this.at + ROWS * ROW) this.at += (Math.floor((to - this.at) / ROW) - ROWS + 1) * ROW;
      choose(to, to + 1, fileOf(this.place), "one byte");
      this.draw(to);
    }
  }

  for (const [id, own] of Object.entries(kept)) {
    const place = document.getElementById(`${id}-bytes`);
    if (place && own.windows.length) grids.set(id, new Grid(place, own));
  }

  all(".command").forEach((pre) => {
    const button = make("button", "copy");
    button.type = "button";
    button.addEventListener("click", () => {
      const text = pre.querySelector("code").textContent;
      navigator.clipboard?.writeText(text).then(() => (button.textContent = "copied"), () => getSelection().selectAllChildren(pre.querySelector("code")));
    });
    pre.append(button);
  });

  // Of many damages, those with a word in their line.
  all("nav ol").forEach((list) => {
    const items = all("li", list);
    if (items.length < 8) return;
    const field = make("input"), label = make("label", "filter ");
    field.type = "search";
    label.append(field);
    list.before(label);
    field.addEventListener("input", () => items.forEach((item) => (item.hidden = !item.textContent.includes(field.value))));
  });

  const open = (damage, focus) => {
    damage.open = true;
    if (focus) damage.querySelector("summary").focus();
    damage.scrollIntoView({ block: "start" });
    choose(Number(damage.dataset.start), Number(damage.dataset.end), fileOf(damage), damage.querySelector("h3").textContent);
  };
  const follow = () => {
    const own = document.getElementById(location.hash.slice(1));
    if (own?.classList.contains("damage")) open(own, false);
  };
  addEventListener("hashchange", follow);
  follow();

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "INPUT") return;
    const damages = all("details.damage"), at = damages.findIndex((own) => own.contains(document.activeElement));
    const to = { n: at + 1, p: at < 0 ? damages.length - 1 : at - 1 }[event.key];
    if (to !== undefined && damages[to]) {
      history.replaceState(null, "", `#${damages[to].id}`);
      open(damages[to], true);
    } else if (event.key === "Escape") {
      const own = damages[at];
      if (own && document.activeElement !== own.querySelector("summary")) own.querySelector("summary").focus();
      else document.getElementById("main").querySelector("h1")?.scrollIntoView();
    }
  });
})();
