/** Asks whether the nearest name was meant, with a space before the question. Returns an empty text if no name is near. */
export function doYouMean(misspelled: string, names: readonly string[]): string {
  const near = names.filter((name) => distance(misspelled, name) <= name.length / 4);
  const [nearest] = near.sort((a, b) => distance(misspelled, a) - distance(misspelled, b));
  return nearest === undefined ? "" : ` Do you mean "${nearest}"?`;
}

/** Returns how many edits turn `a` into `b`. An edit inserts, removes or changes one letter, or swaps two neighbours. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j); // row[j] is the distance of a[0..i] and b[0..j]
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[j - 2]! + 1 : Infinity;
      next.push(Math.min(changed, swapped, row[j]! + 1, next[j - 1]! + 1));
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
