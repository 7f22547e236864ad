// Narrows the contents to what holds every word that is typed; Enter goes to the first of it.
const box = document.getElementById("search");
const list = document.getElementById("list");
const found = document.getElementById("found");
const items = [...list.querySelectorAll("li")];
const texts = items.map((item) => (item.textContent + " " + (item.dataset.more || "")).toLowerCase());
const wide = matchMedia("(min-width: 60rem)");
const unfold = () => { list.open = wide.matches || box.value !== ""; };
wide.addEventListener("change", unfold);
unfold();
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  items.forEach((item, at) => {
    const shown = words.every((word) => texts[at].includes(word));
    item.hidden = !shown;
    count += shown;
  });
  for (const group of list.querySelectorAll("[data-group]")) {
    group.hidden = !group.querySelector("li:not([hidden])");
  }
  found.textContent = words.length ? `${count} found` : "";
  unfold();
});
box.addEventListener("keydown", (event) => {
  if (event.key === "Enter") list.querySelector("li:not([hidden]) a")?.click();
});
