import { expected, type RdataPart } from './part.ts'

/**
 * Octets as groups of hexadecimal digits. `minDigits`: minimum of digits per group in text; printed
 * groups have all digits. `separator`: `-` or `:`.
 */
function hexGroups(
  what: string,
  groupCount: number,
  groupOctets: 1 | 2,
  minDigits: number,
  separator: string,
): RdataPart {
  const digits = groupOctets * 2
  const group = `[0-9a-fA-F]{${minDigits},${digits}}`
  const form = new RegExp(`^${group}(?:${separator}${group}){${groupCount - 1}}$`)
  return {
    parse: (input, output) => {
      const taken = input.take(groupCount * groupOctets)
      if (taken === undefined) return false
      output.put(taken)
      return true
    },
    print: (input) => {
      const groups: string[] = []
      for (let i = 0; i < groupCount; i++) {
        groups.push(input.uint(groupOctets).toString(16).padStart(digits, '0'))
      }
      return groups.join(separator)
    },
    scan: (input, output) => {
      const field = input.next()
      if (field === undefined || field.quoted || !form.test(field.text))
        return expected(what, field)
      const hex = field.text
        .split(separator)
        .map((text) => text.padStart(digits, '0'))
        .join('')
      output.put(new Uint8Array(Buffer.from(hex, 'hex')))
      return undefined
    },
  }
}

/** RFC 7043 sections 3.2 and 4.2. */
export const eui48: RdataPart = hexGroups('an address as in 00-00-5e-00-53-2a', 6, 1, 2, '-')
export const eui64: RdataPart = hexGroups('an address as in 00-00-5e-ef-10-00-00-2a', 8, 1, 2, '-')

/** A node identifier or locator of ILNP (RFC 6742 sections 2.1.2 and 2.3.2). */
export const locator64: RdataPart = hexGroups('64 bits as in 2001:0db8:1140:1000', 4, 2, 1, ':')
