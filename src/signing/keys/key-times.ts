/** Times in BIND's key files, by the words that these files use. They are kept when a key is copied. */
const KEY_EVENTS = [
  'Created',
  'Publish',
  'Activate',
  'Revoke',
  'Inactive',
  'Delete',
  'DSPublish',
  'SyncPublish',
  'SyncDelete',
] as const

type KeyEvent = (typeof KEY_EVENTS)[number]

/** In seconds since the Unix epoch; absent = the file has no such line. */
export type KeyTimes = { readonly [Event in KeyEvent]?: number }

/** Returns the event of a line `WORD: …`; undefined = the word names none. */
export function keyEventOf(word: string): KeyEvent | undefined {
  return KEY_EVENTS.find((event) => event === word)
}

/** Returns the lines `WORD: YYYYMMDDHHMMSS` of a private key file, in BIND's order. */
export function printKeyTimes(times: KeyTimes): string[] {
  return KEY_EVENTS.flatMap((event) => {
    const seconds = times[event]
    return seconds === undefined ? [] : [`${event}: ${printKeyTime(seconds)}`]
  })
}

/** `YYYYMMDDHHMMSS`, in UTC. */
function printKeyTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace(/\D/g, '')
}

/** Returns seconds since the Unix epoch; undefined = the text is not `YYYYMMDDHHMMSS`, in UTC. */
export function scanKeyTime(text: string): number | undefined {
  const fields = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(text)
  if (fields === null) return undefined
  const [, year, month, day, hour, minute, second] = fields.map(Number)
  const seconds = Date.UTC(year!, month! - 1, day, hour, minute, second) / 1000
  return printKeyTime(seconds) === text ? seconds : undefined
}
