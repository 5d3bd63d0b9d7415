/**
 * Control characters, characters that change the direction of the text around them, invisible ones, and halves of
 * surrogate pairs.
 */
const HIDDEN =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb]/gu

/** Returns a text of the server with its hidden characters as `\u{HEX}`, so that it looks like what it is. */
export function printable(text: string): string {
  return text.replace(HIDDEN, (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`)
}
