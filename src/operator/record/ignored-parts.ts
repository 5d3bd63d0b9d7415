import type { DnsRecord } from '../../records/dns-record.ts'
import { findIgnored } from '../../records/validate/ignored.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { DnsRecordView } from './record-view.ts'

/** Parts that the note of a condition names. */
const NOTED_MAX = 3

/** Returns what the nameservers ignore in a valid record, one line each: as a server reports it. */
export function listIgnored({ object }: DnsRecordView, content: DnsRecord): readonly string[] {
  const parts = findIgnored(object as YamlValue, content)
  return [...new Set(parts.map(({ message }) => message))]
}

/** For the message of the condition Ready; '' = nothing is ignored. */
export function noteIgnored(ignored: readonly string[]): string {
  if (ignored.length === 0) return ''
  const more = ignored.length > NOTED_MAX ? [`and ${ignored.length - NOTED_MAX} more`] : []
  return [...ignored.slice(0, NOTED_MAX), ...more].join('; ')
}
