// Sets the chosen theme before anything is painted; "system" means no choice.
(() => {
  const chosen = localStorage.getItem("rollcall-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
