// Shows a drawing whose elements can be chosen with a click. It runs in the sandbox, with `container`, `say` and `state`.
container.innerHTML = state.drawing;
const root = container.querySelector("svg");
root.setAttribute("width", "100%");
root.setAttribute("height", "100%");
document.documentElement.style.overflow = container.style.overflow = document.body.style.overflow = "hidden";
root.style.cursor = "crosshair";
const look = document.createElement("style");
look.textContent = "[data-chosen] { outline: 2px dashed #e8590c; outline-offset: 1px; }";
document.head.append(look);
root.addEventListener("click", (event) => {
  event.preventDefault();
  const element = event.target.closest(`[${state.mark}]`);
  if (element !== null && element !== root) { say({ chosen: Number(element.getAttribute(state.mark)) }); }
});
return ({ chosen }) => {
  root.querySelectorAll("[data-chosen]").forEach((element) => element.removeAttribute("data-chosen"));
  root.querySelector(`[${state.mark}="${Number(chosen)}"]`)?.setAttribute("data-chosen", "");
};
