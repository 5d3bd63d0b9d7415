import { scanBase64, scanHex } from './binary.ts'
import { plainName } from './names.ts'
import { scanInteger } from './numbers.ts'
import { expected, type RdataPart } from './part.ts'

/**
 * The whole rdata of HIP (RFC 8005 sections 5 and 6); text starts with the algorithm and has no
 * lengths:
 *
 *     tag octets u8 | algorithm u8 | key octets u16 | host identity tag | public key | rendezvous servers, names
 */
export const hostIdentity: RdataPart = {
  parse: (input, output) => {
    const tagOctets = input.uint(1)
    const algorithm = input.uint(1)
    const keyOctets = input.uint(2)
    const tag = keyOctets < 0 ? undefined : input.take(tagOctets)
    const key = tag === undefined ? undefined : input.take(keyOctets)
    if (tag === undefined || key === undefined || tagOctets < 1 || keyOctets < 1) return false
    output.u8(tagOctets)
    output.u8(algorithm)
    output.u16(keyOctets)
    output.put(tag)
    output.put(key)
    while (input.remaining > 0) if (!plainName.parse(input, output)) return false
    return true
  },
  print: (input) => {
    const tagOctets = input.uint(1)
    const algorithm = input.uint(1)
    const keyOctets = input.uint(2)
    const tag = Buffer.from(input.take(tagOctets) ?? [])
      .toString('hex')
      .toUpperCase()
    const key = Buffer.from(input.take(keyOctets) ?? []).toString('base64')
    const texts = [String(algorithm), tag, key]
    while (input.remaining > 0) texts.push(plainName.print(input))
    return texts.join(' ')
  },
  scan: (input, output) => {
    const algorithmField = input.next()
    const algorithm = scanInteger(algorithmField?.text ?? '', 255)
    if (algorithm === undefined) return expected('an algorithm (0 to 255)', algorithmField)
    const tagField = input.next()
    const tag = scanHex(tagField?.text ?? '')
    if (tag === undefined || tag.length < 1 || tag.length > 255) {
      return expected('a host identity tag in hexadecimal', tagField)
    }
    const keyField = input.next()
    const key = scanBase64(keyField?.text ?? '')
    if (key === undefined || key.length < 1 || key.length > 0xffff) {
      return expected('a public key in base64', keyField)
    }
    output.u8(tag.length)
    output.u8(algorithm)
    output.u16(key.length)
    output.put(tag)
    output.put(key)
    while (input.remaining > 0) {
      const complaint = plainName.scan(input, output)
      if (complaint !== undefined) return complaint
    }
    return undefined
  },
}
