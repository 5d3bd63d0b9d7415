/** `\052`: Route 53 writes octets of names and values in octal. */
const OCTAL = /\\([0-3][0-7]{2})/g

/** Returns a name of Route 53, with `*` for a wildcard. Other escapes stay. */
export function nameOf(text: string): string {
  return text.replaceAll('\\052', '*')
}

/** Returns a value as a zone file has it, with decimal escapes. */
export function decimalOf(text: string): string {
  return text.replace(OCTAL, (_, octal: string) => {
    return `\\${String(Number.parseInt(octal, 8)).padStart(3, '0')}`
  })
}
