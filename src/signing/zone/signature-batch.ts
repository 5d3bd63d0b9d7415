import type { SigningKey } from '../../dns/dnssec/dnskey.ts'
import { type SignatureTimes, type SignedSet, signSet } from '../../dns/dnssec/rrsig.ts'
import { OctetReader, OctetWriter } from '../../dns/rdata/octets.ts'

/** A signature to make. */
export interface SignatureRequest {
  readonly set: SignedSet
  readonly key: SigningKey
  readonly times: SignatureTimes
}

/** Requests as one block of octets, so that a message between threads has few objects. */
export interface SignatureBatch {
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  readonly keys: readonly SigningKey[]
  readonly count: number
  readonly octets: Uint8Array
}

/** Packs requests of one zone. */
export function packRequests(
  apex: Uint8Array,
  requests: readonly SignatureRequest[],
): SignatureBatch {
  const keys: SigningKey[] = []
  const out = new OctetWriter()
  for (const { set, key, times } of requests) {
    if (!keys.includes(key)) keys.push(key)
    out.u16(keys.indexOf(key))
    out.u32(times.inceptionSeconds)
    out.u32(times.expirationSeconds)
    out.u16(set.type)
    out.u32(set.ttlSeconds)
    putBlock(out, set.owner)
    out.u16(set.rdata.length)
    for (const rdata of set.rdata) putBlock(out, rdata)
  }
  return { apex, keys, count: requests.length, octets: out.octets() }
}

/** Makes the signatures of a batch. Returns their RRSIG rdata, packed. */
export function signBatch({ apex, keys, count, octets }: SignatureBatch): Uint8Array {
  const input = new OctetReader(octets, 0, octets.length)
  const out = new OctetWriter()
  for (let i = 0; i < count; i++) {
    const key = keys[input.uint(2)]!
    const times = { inceptionSeconds: input.uint(4), expirationSeconds: input.uint(4) }
    const type = input.uint(2)
    const ttlSeconds = input.uint(4)
    const owner = takeBlock(input)
    const rdata = Array.from({ length: input.uint(2) }, () => takeBlock(input))
    putBlock(out, signSet({ owner, type, ttlSeconds, rdata }, key, apex, times))
  }
  return out.octets()
}

/** Returns the RRSIG rdata that `signBatch` packed, in the order of the requests. */
export function unpackSignatures(octets: Uint8Array): Uint8Array[] {
  const input = new OctetReader(octets, 0, octets.length)
  const signatures: Uint8Array[] = []
  while (input.remaining > 0) signatures.push(takeBlock(input))
  return signatures
}

function putBlock(out: OctetWriter, octets: Uint8Array): void {
  out.u16(octets.length)
  out.put(octets)
}

function takeBlock(input: OctetReader): Uint8Array {
  return input.take(input.uint(2))!
}
