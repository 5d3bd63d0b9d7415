/** One token of a Corefile. */
export interface Token {
  readonly text: string
  /** The path as given on the command line, or the absolute path of an imported file. */
  readonly file: string
  /** Line that the token starts on; counts from 1. */
  readonly line: number
  /** It was in double quotes, which are not part of `text`; absent = no. */
  readonly isQuoted?: true
}

/** Whether `following` starts on the line that `token` ends on. A quoted token may span lines. */
export function continuesLine(token: Token, following: Token): boolean {
  return token.file === following.file && token.line + lineBreaks(token.text) === following.line
}

/** Whether `following` starts on a later line than `token` ends on, or in another file. */
export function startsLine(token: Token, following: Token): boolean {
  return token.file !== following.file || token.line + lineBreaks(token.text) < following.line
}

function lineBreaks(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++
  return count
}
