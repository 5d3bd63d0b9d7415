import { concatNames, lowerName, scanName } from '../../dns/name/name.ts'
import { type Address, printAddress } from '../../dns/text/address.ts'

/** Returns the name of `labels` in `zone` in lower-case wire form; undefined if a label is invalid. */
export function nameBelow(labels: readonly string[], zone: Uint8Array): Uint8Array | undefined {
  if (labels.some((label) => label === '' || /[^\w-]/.test(label))) return undefined
  const relative = scanName(`${labels.join('.')}.`)
  return relative === undefined ? undefined : concatNames(lowerName(relative), zone)
}

/** Returns the label that stands for an address: `10-0-0-1`, `2001-db8--1`. */
export function dashedAddress({ bytes, family }: Address): string {
  const dashed = printAddress(bytes, family).replaceAll(/[.:]/g, '-')
  return dashed.endsWith('-') ? `${dashed}0` : dashed
}
