// Before anything is painted, so that a dark page never flashes light.
(() => {
  const wish = localStorage.getItem("headrace-theme") ?? "system";
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const isDark = wish === "dark" || (wish === "system" && dark);
  document.documentElement.classList.toggle("pf-v6-theme-dark", isDark);
})();
