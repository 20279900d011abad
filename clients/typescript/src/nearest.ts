/** Returns the name that a misspelled one is meant to be; undefined if no name is near. */
export function nearest(misspelled: string, names: readonly string[]): string | undefined {
  const near = names.filter((name) => distance(misspelled, name) <= name.length / 4);
  return near.sort((a, b) => distance(misspelled, a) - distance(misspelled, b))[0];
}

/** Returns how many edits turn `a` into `b`. An edit inserts, removes or changes one letter. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j); // row[j] is the distance of a[0..i] and b[0..j]
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      next.push(letter === b[j] ? row[j]! : 1 + Math.min(row[j]!, row[j + 1]!, next[j]!));
    }
    row = next;
  }
  return row[b.length]!;
}
