// The documented part of ThingsBoard's widget context. It runs in the sandbox; whatever needs the page or the server is asked of the page.
globalThis.fieldlineServices ??= (() => {
  const isWorker = globalThis.document === undefined;
  const post = isWorker ? (message) => postMessage(message) : (message) => parent.postMessage(message, "*");
  const waiting = new Map();
  let nextCall = 1;
  addEventListener("message", ({ source, data }) => {
    if ((isWorker || source === parent) && data?.kind === "answer") {
      const { resolve, reject } = waiting.get(data.call) ?? {};
      waiting.delete(data.call);
      if (data.error === undefined) { resolve?.(data.value); } else { reject?.(Object.assign(new Error(data.error.message), { status: data.error.status, error: data.error })); }
    }
  });
  const ask = (service, method, args) => new Promise((resolve, reject) => {
    const call = nextCall++;
    waiting.set(call, { resolve, reject });
    // What can't be sent, such as functions, is left out.
    post({ kind: "call", call, service, method, args: JSON.parse(JSON.stringify(args)) });
  });

  class Observable {
    constructor(run) { this.run = run; }
    subscribe(next, error, complete) {
      const observer = typeof next === "function" || next === undefined || next === null ? { next, error, complete } : next;
      let closed = false;
      const end = () => { closed = true; };
      this.run({
        next: (value) => { if (!closed) { observer.next?.(value); } },
        error: (problem) => { if (!closed) { end(); if (observer.error) { observer.error(problem); } else { post({ kind: "failure", message: String(problem?.message ?? problem) }); } } },
        complete: () => { if (!closed) { end(); observer.complete?.(); } },
      });
      return { unsubscribe: end, get closed() { return closed; } };
    }
    pipe(...operators) { return operators.reduce((source, operator) => operator(source), this); }
    toPromise() {
      return new Promise((resolve, reject) => {
        let last;
        this.subscribe({ next: (value) => { last = value; }, error: reject, complete: () => resolve(last) });
      });
    }
  }
  const guarded = (observer, work) => { try { return work(); } catch (problem) { observer.error(problem); return undefined; } };
  const from = (source) => {
    if (source instanceof Observable) { return source; }
    if (typeof source?.then === "function") {
      return new Observable((observer) => { source.then((value) => { observer.next(value); observer.complete(); }, (problem) => observer.error(problem)); });
    }
    return new Observable((observer) => { for (const value of source) { observer.next(value); } observer.complete(); });
  };
  const of = (...values) => from(values);
  const called = (service, method) => (...args) => new Observable((observer) => { ask(service, method, args).then((value) => { observer.next(value); observer.complete(); }, (problem) => observer.error(problem)); });
  const lift = (next) => (source) => new Observable((observer) => { source.subscribe({ next: (value) => guarded(observer, () => next(value, observer)), error: (problem) => observer.error(problem), complete: () => observer.complete() }); });
  const flat = (project) => (source) => new Observable((observer) => {
    let open = 1;
    const done = () => { open--; if (open === 0) { observer.complete(); } };
    source.subscribe({
      next: (value) => guarded(observer, () => { open++; from(project(value)).subscribe({ next: (inner) => observer.next(inner), error: (problem) => observer.error(problem), complete: done }); }),
      error: (problem) => observer.error(problem),
      complete: done,
    });
  });
  const forkJoin = (given) => new Observable((observer) => {
    const named = !Array.isArray(given);
    const names = Object.keys(given);
    const results = named ? {} : [];
    let left = names.length;
    if (left === 0) { observer.complete(); }
    names.forEach((name) => from(given[name]).subscribe({
      next: (value) => { results[name] = value; },
      error: (problem) => observer.error(problem),
      complete: () => { left--; if (left === 0) { observer.next(results); observer.complete(); } },
    }));
  });
  const rxjs = {
    Observable, of, from, forkJoin, EMPTY: from([]), throwError: (problem) => new Observable((observer) => observer.error(typeof problem === "function" ? problem() : problem)),
    firstValueFrom: (source) => source.toPromise(), lastValueFrom: (source) => source.toPromise(),
    map: (project) => lift((value, observer) => observer.next(project(value))),
    tap: (look) => lift((value, observer) => { (typeof look === "function" ? look : look?.next)?.(value); observer.next(value); }),
    filter: (test) => lift((value, observer) => { if (test(value)) { observer.next(value); } }),
    take: (count) => (source) => new Observable((observer) => { let left = count; source.subscribe({ next: (value) => { if (left > 0) { left--; observer.next(value); if (left === 0) { observer.complete(); } } }, error: (problem) => observer.error(problem), complete: () => observer.complete() }); }),
    switchMap: flat, mergeMap: flat, concatMap: flat, exhaustMap: flat,
    catchError: (rescue) => (source) => new Observable((observer) => { source.subscribe({ next: (value) => observer.next(value), error: (problem) => guarded(observer, () => from(rescue(problem)).subscribe(observer)), complete: () => observer.complete() }); }),
    finalize: (work) => (source) => new Observable((observer) => { source.subscribe({ next: (value) => observer.next(value), error: (problem) => { work(); observer.error(problem); }, complete: () => { work(); observer.complete(); } }); }),
  };
  // Names of the services and what they offer are those of the page's list.
  const service = (name) => new Proxy({}, { get: (_target, method) => (typeof method === "string" && method !== "then" ? called(name, method) : undefined) });
  const toast = (kind) => (message) => { ask("page", "toast", [kind, String(message)]).catch(() => undefined); };

  // Dialogs of templates: bindings of Angular's simplest kinds are done here, its components are not.
  const expression = (code, names) => new Function(...names, `with (this) { ${code} }`);
  const customDialog = (template, controller, data) => new Observable((observer) => {
    if (isWorker) { observer.error(new Error("A dialog needs an action with a template of its own.")); return; }
    const host = document.getElementById("container");
    const close = (result) => { host.replaceChildren(); ask("page", "closeDialog", []).catch(() => undefined); observer.next(result); observer.complete(); };
    const instance = { data: { ...data }, ...data, dialogRef: { close }, validators: {}, router: undefined };
    const unknown = new Set();
    const fields = [];
    const read = (code) => { try { return expression(`return (${code});`, []).call(instance); } catch { return undefined; } };
    const refresh = () => fields.forEach((update) => update());
    const shown = document.createElement("div");
    shown.innerHTML = template;
    for (const element of shown.querySelectorAll("*")) {
      if (element.tagName.includes("-")) { unknown.add(element.tagName.toLowerCase()); }
      for (const { name, value } of [...element.attributes]) {
        const event = /^\((\w+)\)$/.exec(name)?.[1];
        const property = /^\[(\w+)\]$/.exec(name)?.[1];
        if (event === "ngsubmit") {
          // Forms are not sent in a sandbox, so what would send them is heard instead.
          const submit = ($event) => { $event.preventDefault(); expression(`${value};`, ["$event"]).call(instance, $event); refresh(); };
          element.addEventListener("click", ($event) => { if ($event.target.closest?.("button, input")?.type === "submit") { submit($event); } });
          element.addEventListener("keydown", ($event) => { if ($event.key === "Enter" && $event.target.tagName === "INPUT") { submit($event); } });
        } else if (event !== undefined) {
          element.addEventListener(event, ($event) => { expression(`${value};`, ["$event"]).call(instance, $event); refresh(); });
        } else if (property === "disabled" || property === "hidden") {
          fields.push(() => { element[property] = Boolean(read(value)); });
        } else if (name === "*ngif") {
          fields.push(() => { element.hidden = !read(value); });
        } else if (name === "[(ngmodel)]") {
          const isBox = element.type === "checkbox";
          element.addEventListener("input", () => { expression(`${value} = $value;`, ["$value"]).call(instance, isBox ? element.checked : element.type === "number" ? element.valueAsNumber : element.value); refresh(); });
          fields.push(() => { const now = read(value); if (isBox) { element.checked = Boolean(now); } else if (document.activeElement !== element) { element.value = now ?? ""; } });
        } else if (/^[[(*]|^formcontrolname$|^formgroup/.test(name)) {
          unknown.add(name);
        }
      }
    }
    const texts = document.createTreeWalker(shown, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const node = texts.currentNode;
      const pattern = node.data;
      if (pattern.includes("{{")) {
        fields.push(() => { node.data = pattern.replace(/\{\{(.*?)\}\}/gs, (_whole, code) => { const translated = /^\s*'([^']*)'\s*\|\s*translate\s*$/.exec(code)?.[1]; return translated ?? String(read(code.split("|")[0]) ?? ""); }); });
      }
    }
    guarded(observer, () => { if (typeof controller === "function") { new controller(instance); } });
    refresh();
    host.replaceChildren(...shown.childNodes);
    ask("page", "openDialog", [[...unknown].slice(0, 20)]).catch(() => undefined);
    instance.detectChanges = refresh;
    globalThis.fieldlineRefresh = refresh;
  });

  return (ctx) => {
    const current = () => ctx.statePath?.at(-1) ?? { id: "default", params: {} };
    const page = (method) => (...args) => { ask("page", method, args).catch((problem) => post({ kind: "failure", message: String(problem?.message ?? problem) })); };
    const services = Object.fromEntries(["attributeService", "deviceService", "assetService", "entityViewService", "customerService", "entityRelationService", "alarmService", "entityService"].map((name) => [name, service(name)]));
    Object.assign(ctx, globalThis.fieldlineBasics, services, {
      rxjs,
      http: Object.fromEntries(["get", "post", "put", "delete"].map((method) => [method, called("http", method)])),
      dialogs: { confirm: called("page", "confirm"), alert: called("page", "alert") },
      customDialog: { customDialog },
      stateController: {
        openState: page("openState"), updateState: page("updateState"), navigatePrevState: page("navigatePrevState"), openRightLayout: () => undefined,
        getStateId: () => current().id, getStateParams: () => current().params, getStateIndex: () => (ctx.statePath?.length ?? 1) - 1,
        getStateParamsByStateId: (id) => ctx.statePath?.findLast((state) => state.id === id)?.params ?? null,
        getEntityId: (name) => (name ? current().params[name]?.entityId : current().params.entityId) ?? null,
        getStateIdAtIndex: (index) => ctx.statePath?.[index]?.id ?? null,
      },
      showToast: (kind, message) => toast(kind)(message), showSuccessToast: toast("success"), showInfoToast: toast("info"), showWarnToast: toast("warn"), showErrorToast: toast("error"), hideToast: () => undefined,
      updateAliases: page("updateAliases"),
      detectChanges: () => globalThis.fieldlineRefresh?.(),
      $scope: ctx.$scope ?? { $injector: { get: (name) => { const own = String(name?.name ?? name); const found = services[own.charAt(0).toLowerCase() + own.slice(1)] ?? ctx[own]; if (found === undefined) { throw new Error(`${own} is not available here`); } return found; } } },
    });
    ctx.$injector = ctx.$scope.$injector;
    ctx.ctx = ctx;
    return ctx;
  };
})();
