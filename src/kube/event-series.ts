import { escapeControls } from '../base/telemetry/log.ts'
import type { ApiObject } from './api.ts'
import { microTime } from './micro-time.ts'

/** The object that an Event is about. */
export interface EventSubject {
  readonly apiVersion: string
  readonly kind: string
  /** '' = the kind has no namespaces. */
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** What happened to an object. */
export interface EventDetails {
  readonly type: 'Normal' | 'Warning'
  /** The cause as one CamelCase identifier, as `kubectl get events` shows it: `ProviderSuccess`. */
  readonly reason: string
  /** The action taken, as one CamelCase identifier: `Publish`. */
  readonly action: string
  /** Text for people. */
  readonly note: string
}

/** Maximum lengths in the API, in octets. */
const NOTE_OCTETS_MAX = 1024
const WORD_OCTETS_MAX = 128
/**
 * Longest part of the object's name in the name of an Event, which leaves room for a unique suffix.
 */
const NAME_MAX = 220

/** A happening and its repetitions. */
export interface EventSeries {
  readonly subject: EventSubject
  readonly details: EventDetails
  /** Namespace of its Event. */
  readonly namespace: string
  readonly name: string
  readonly firstMs: number
  lastMs: number
  count: number
  /** The count that the API has; 0 = the Event does not exist yet. */
  writtenCount: number
  writtenMs: number
}

/** `sequence`: distinguishes Events of the same millisecond. */
export function beginSeries(
  subject: EventSubject,
  details: EventDetails,
  nowMs: number,
  sequence: number,
): EventSeries {
  const stem = subject.name.slice(0, NAME_MAX).replace(/[^a-z0-9]+$/, '')
  return {
    subject,
    details: {
      ...details,
      reason: clipOctets(details.reason, WORD_OCTETS_MAX),
      action: clipOctets(details.action, WORD_OCTETS_MAX),
      note: clipOctets(escapeControls(details.note), NOTE_OCTETS_MAX),
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

/** Key of a series: happenings with the same key share one Event. */
export function seriesKey({ uid, ...subject }: EventSubject, details: EventDetails): string {
  const { namespace, kind, name } = subject
  const { type, reason, action, note } = details
  return JSON.stringify([uid, namespace, kind, name, type, reason, action, note])
}

/** An Event of events.k8s.io/v1. */
export function composeEvent(series: EventSeries, controller: string, instance: string): ApiObject {
  const { subject, details, namespace, name, firstMs } = series
  const { uid, ...regarding } = subject
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace, name },
    eventTime: microTime(firstMs),
    reportingController: controller,
    reportingInstance: instance,
    regarding: uid === '' ? regarding : { ...regarding, uid },
    ...details,
    ...composeSeries(series),
  }
}

/** The part of an Event that changes; empty if it happened once. */
export function composeSeries({ count, lastMs }: EventSeries): ApiObject {
  if (count < 2) return {}
  return { series: { count, lastObservedTime: microTime(lastMs) } }
}

/** Cuts text to a number of octets, without splitting a character. */
function clipOctets(text: string, octetsMax: number): string {
  const octets = Buffer.from(text)
  if (octets.length <= octetsMax) return text
  let end = octetsMax - 3
  while (((octets[end] ?? 0) & 0xc0) === 0x80) end--
  return `${octets.toString('utf8', 0, end)}…`
}
