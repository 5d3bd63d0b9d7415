/** DEL, C1 controls, line separators, format characters: JSON may have them, a terminal obeys or hides them. */
const FORMAT_CHARACTERS = /[\u007f-\u009f\u2028\u2029\p{Cf}]/gu

/** Reads a text as JSON; undefined = it is not JSON. */
export function scanJsonText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Prints a value as JSON without characters that control a terminal. `indent`: spaces per level; 0 = one line. */
export function printJsonText(value: unknown, indent = 0): string {
  return escapeFormatCharacters(JSON.stringify(value, undefined, indent))
}

/** Replaces FORMAT_CHARACTERS by escapes of JSON. */
function escapeFormatCharacters(text: string): string {
  return text.replace(FORMAT_CHARACTERS, (c) => {
    // A character above U+FFFF has two UTF-16 units.
    return c.split('').map(printUnit).join('')
  })
}

function printUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}
