// Shows only what happens to the chosen member, in the chosen topic. SPDX-License-Identifier: Apache-2.0
const form = document.querySelector(".choice");
const [member, topic] = form.querySelectorAll("select");
const grid = document.querySelector(".grid");
const SIDES = 3; // the columns before the partitions: member, before, after

function showGrid() {
  const [heads, numbers, ...rows] = grid.rows;
  const chosen = rows[member.selectedIndex - 1];
  const topics = [...heads.cells].slice(SIDES);
  const names = topics.flatMap((head) => Array(Number(head.dataset.columns)).fill(head.textContent));
  const shown = names.map(
    (name, i) => (!topic.value || name === topic.value) && (!chosen || chosen.cells[SIDES + i].title !== ""),
  );
  for (const row of [numbers, ...rows]) shown.forEach((is, i) => (row.cells[row.cells.length - shown.length + i].hidden = !is));
  let first = 0;
  for (const head of topics) {
    const count = shown.slice(first, (first += Number(head.dataset.columns))).filter(Boolean).length;
    head.hidden = count === 0;
    head.colSpan = Math.max(count, 1);
  }
  const has = (row) => shown.some((is, i) => is && row.cells[SIDES + i].title !== "");
  for (const row of rows) row.hidden = row !== chosen && (member.value || topic.value) && !has(row);
}

function showRounds() {
  const names = member.value && JSON.parse(member.value);
  const isMeant = ({ cells }) =>
    (!names || names.includes(cells[0].textContent)) &&
    (!topic.value || [...cells].slice(2).some((cell) => ` ${cell.textContent}`.includes(` ${topic.value}[`)));
  let named = 0;
  const rounds = [...document.querySelectorAll("section")];
  for (const round of rounds) {
    const rows = [...round.querySelectorAll("tr")].slice(1);
    for (const row of rows) row.hidden = !isMeant(row);
    const is = rows.some((row) => !row.hidden);
    round.classList.toggle("aside", !is && Boolean(names || topic.value));
    named += is;
  }
  const what = [member, topic].filter((one) => one.value).map((one) => one.selectedOptions[0].text).join(", ");
  form.querySelector("output").textContent = what && `${what} changes in ${named} of ${rounds.length} rounds.`;
}

function follow() {
  if (grid) showGrid();
  showRounds();
}

form.hidden = false;
form.addEventListener("change", follow);
follow();
