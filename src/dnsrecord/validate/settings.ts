import {
  type AllDownPolicy,
  CLOSED,
  OPEN,
  STICKY_DEFAULT,
  STICKY_IPV4_BITS_MAX,
  STICKY_IPV6_BITS_MAX,
  type StickyPrefix,
} from '../../steering/rules.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import { SET_IDENTIFIER_CHARACTERS_MAX } from '../dns-record.ts'
import type { RecordSettings } from '../settings.ts'
import { field, METADATA, mappingField, quote, RefusedError } from './fields.ts'

/** Every annotation that sets something begins so. */
export const SETTING_PREFIX = 'sextant.io/'
const ALL_DOWN = `${SETTING_PREFIX}all-down`
const STICKY = `${SETTING_PREFIX}sticky`

/** The annotations of a DNSRecord that this server reads. */
export const SETTING_NAMES: readonly string[] = [ALL_DOWN, STICKY]

type Mapping = { readonly [key: string]: YamlValue }
type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Reads the settings of a record; undefined = it has none. Throws RefusedError. */
export function scanSettings(metadata: Mapping): RecordSettings | undefined {
  if (field(metadata, 'annotations') === undefined) return undefined
  const annotations = mappingField(metadata, 'annotations', METADATA)
  const settings: Writable<RecordSettings> = {}
  // The order is part of the packed form: equal settings have equal text.
  scan(annotations, ALL_DOWN, (text) => {
    settings.allDown = scanAllDown(text)
  })
  scan(annotations, STICKY, (text) => {
    settings.sticky = scanSticky(text)
  })
  return Object.keys(settings).length === 0 ? undefined : settings
}

/** Why a setting is invalid; `scan` adds the name of the annotation. */
class SettingError extends Error {}

function scan(annotations: Mapping, name: string, take: (text: string) => void): void {
  const value = field(annotations, name)
  if (value === undefined) return
  const place = METADATA.at('annotations').at(name)
  if (typeof value !== 'string') throw new RefusedError(place, `${name} must be a string`)
  try {
    take(value)
  } catch (error) {
    if (!(error instanceof SettingError)) throw error
    throw new RefusedError(place, `${name} ${error.message}`)
  }
}

function scanAllDown(text: string): AllDownPolicy {
  const isFit = text !== '' && text.trim() === text && text.length <= SET_IDENTIFIER_CHARACTERS_MAX
  if (isFit) return text
  throw new SettingError(
    `must be ${OPEN}, ${CLOSED} or the set identifier of an endpoint, got ${quote(text)}`,
  )
}

function scanSticky(text: string): StickyPrefix | 'off' {
  if (text === 'true') return STICKY_DEFAULT
  if (text === 'false') return 'off'
  const prefix = scanStickyPrefix(text.trim().split(/\s+/))
  if (prefix !== undefined) return prefix
  throw new SettingError(
    `must be true, false or two prefix lengths, such as "24 56", got ${quote(text)}`,
  )
}

/** Reads the prefix lengths for IPv4 and IPv6; undefined = they are invalid. */
export function scanStickyPrefix(texts: readonly string[]): StickyPrefix | undefined {
  const [ipv4, ipv6] = texts
  if (texts.length !== 2 || !texts.every((text) => /^[1-9]\d?$/.test(text))) return undefined
  const prefix = { ipv4Bits: Number(ipv4), ipv6Bits: Number(ipv6) }
  const isFit = prefix.ipv4Bits <= STICKY_IPV4_BITS_MAX && prefix.ipv6Bits <= STICKY_IPV6_BITS_MAX
  return isFit ? prefix : undefined
}
