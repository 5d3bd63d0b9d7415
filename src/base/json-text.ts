/** Reads a text as JSON; undefined = it is not JSON. */
export function scanJsonText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
