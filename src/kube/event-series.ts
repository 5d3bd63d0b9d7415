import type { ApiObject } from './api.ts'
import { microTime } from './micro-time.ts'

/** An object that something happened to. */
export interface EventSubject {
  readonly apiVersion: string
  readonly kind: string
  /** '' = the kind has none. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** What happened. */
export interface Happening {
  readonly type: 'Normal' | 'Warning'
  /** Why, in one word, as `kubectl get events` has it: `ProviderSuccess`. */
  readonly reason: string
  /** What we did about it, in one word: `Publish`. */
  readonly action: string
  /** For people. */
  readonly note: string
}

/** Lengths that the API allows, in octets. */
const NOTE_OCTETS_MAX = 1024
const WORD_OCTETS_MAX = 128
/** Of the name, so that there is room for what makes it unlike others. */
const NAME_MAX = 220

/** The same thing, time and again. */
export interface EventSeries {
  readonly subject: EventSubject
  readonly happening: Happening
  /** Where its Event is. */
  readonly namespace: string
  readonly name: string
  readonly firstMs: number
  lastMs: number
  count: number
  /** As the API knows it; 0 = there is no Event yet. */
  writtenCount: number
  writtenMs: number
}

/** `sequence`: tells Events of the same millisecond apart. */
export function beginSeries(
  subject: EventSubject,
  happening: Happening,
  nowMs: number,
  sequence: number,
): EventSeries {
  const stem = subject.name.slice(0, NAME_MAX).replace(/[^a-z0-9]+$/, '')
  return {
    subject,
    happening: {
      ...happening,
      reason: clipOctets(happening.reason, WORD_OCTETS_MAX),
      action: clipOctets(happening.action, WORD_OCTETS_MAX),
      note: clipOctets(happening.note, NOTE_OCTETS_MAX),
    },
    namespace: subject.namespace === '' ? 'default' : subject.namespace,
    name: `${stem}.${(nowMs * 1000 + (sequence % 1000)).toString(16)}`,
    firstMs: nowMs,
    lastMs: nowMs,
    count: 1,
    writtenCount: 0,
    writtenMs: 0,
  }
}

/** What two have in common that are told as one. */
export function seriesKey({ uid, ...subject }: EventSubject, happening: Happening): string {
  const { namespace, kind, name } = subject
  const { type, reason, action, note } = happening
  return JSON.stringify([uid, namespace, kind, name, type, reason, action, note])
}

/** An Event of events.k8s.io/v1. */
export function composeEvent(series: EventSeries, controller: string, instance: string): ApiObject {
  const { subject, happening, namespace, name, firstMs } = series
  const { uid, ...regarding } = subject
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace, name },
    eventTime: microTime(firstMs),
    reportingController: controller,
    reportingInstance: instance,
    regarding: uid === '' ? regarding : { ...regarding, uid },
    ...happening,
    ...composeSeries(series),
  }
}

/** The part of an Event that changes; nothing where it happened once. */
export function composeSeries({ count, lastMs }: EventSeries): ApiObject {
  if (count < 2) return {}
  return { series: { count, lastObservedTime: microTime(lastMs) } }
}

/** Not in the middle of a character. */
function clipOctets(text: string, octetsMax: number): string {
  const octets = Buffer.from(text)
  if (octets.length <= octetsMax) return text
  let end = octetsMax - 3
  while (((octets[end] ?? 0) & 0xc0) === 0x80) end--
  return `${octets.toString('utf8', 0, end)}…`
}
