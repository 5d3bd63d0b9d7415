/** A MicroTime of the API, from milliseconds since the Unix epoch. */
export function microTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace('Z', '000Z')
}
