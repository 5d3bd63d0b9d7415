/** Returns a count with its noun: `1 record`, `2 records`. `noun`: singular; its plural ends in s. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
