/**
 * Control characters, characters that change the direction of the text around them, invisible ones, and halves of
 * surrogate pairs.
 */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu

/** Returns a text of the server with its hidden characters as `\u{HEX}`, so that it looks like what it is. */
export function printable(text: string): string {
  return text.replace(HIDDEN, (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`)
}
