import type { ZoneReader } from '../../../src/zone/image/reader.ts'
import { listRRsets, listZones } from '../../support/zone-contents.ts'

/** All that a reader's version holds, as sorted lines of text: equal for equal content. */
export function printImage(reader: ZoneReader): string[] {
  const lines: string[] = []
  for (const { id, apex } of listZones(reader)) {
    for (const { owner, type, ttlSeconds, rdata, steering } of listRRsets(reader, id)) {
      const data = rdata.map((octets) => Buffer.from(octets).toString('hex')).join()
      const name = Buffer.from(owner).toString('latin1')
      const zone = Buffer.from(apex).toString('latin1')
      lines.push(`${zone} ${name} ${type} ${ttlSeconds} ${data} ${steering?.join() ?? ''}`)
    }
  }
  return lines.sort()
}
