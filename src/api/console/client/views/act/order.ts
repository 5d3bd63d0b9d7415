import type { WhatIfOrder } from '../../../../../plugin/admin-what-if.ts'
import { printable } from '../../shell/printable.ts'
import type { MapPreviews } from '../map/preview-parameters.ts'

/** What an operator can order, or only preview. */
export const ACTS = ['drain', 'undrain', 'shift', 'manifests'] as const
export type Act = (typeof ACTS)[number]

/** An order as the fields of the page have it. */
export interface Draft {
  readonly act: Act
  /** Of a drain that begins or ends. */
  readonly selector: string
  /** When a drain ends: a duration or a time; '' = when it is ended. */
  readonly until: string
  readonly manifests: string
  readonly shift: ShiftDraft
}

/** A shift as the fields of the page have it. */
export interface ShiftDraft {
  readonly name: string
  readonly to: string
  /** `5%,25%,100%`. */
  readonly steps: string
  readonly bake: string
}

/** Texts above this are refused by the server. */
export const MANIFESTS_OCTETS_MAX = 1000 * 1000
const SITE = /(?:^|\s)(?:site|host):("(?:[^"\\]|\\.)*"|\S+)/g

export function scanAct(text: string): Act {
  return ACTS.find((act) => act === text) ?? 'drain'
}

/** Returns what to preview; undefined = a field is empty. */
export function whatIfOf({ act, selector, manifests, shift }: Draft): WhatIfOrder | undefined {
  if (act === 'manifests') return manifests.trim() === '' ? undefined : { manifests }
  if (act === 'shift') return whatIfOfShift(shift)
  if (selector.trim() === '') return undefined
  return act === 'drain' ? { drain: selector.trim() } : { undrain: selector.trim() }
}

/** Of the last step: where the shift leads. */
function whatIfOfShift({ name, to, steps, bake }: ShiftDraft): WhatIfOrder | undefined {
  const percent = Number.parseFloat(steps.split(',').at(-1) ?? '')
  if ([name, to, bake].some((text) => text.trim() === '') || !(percent >= 0)) return undefined
  return { shift: { name: name.trim(), to: to.trim(), percent } }
}

/** Returns the parameters of the map after an order; undefined = the address has no place for it. */
export function previewOf(draft: Draft): MapPreviews | undefined {
  const { drain, undrain, shift } = whatIfOf(draft) ?? {}
  if (drain !== undefined) return { drain }
  if (undrain !== undefined) return { undrain }
  return shift && { shift: `${shift.name} ${shift.to} ${shift.percent}` }
}

/** Returns what is wrong with manifests before they are sent; '' = nothing. */
export function faultOfManifests(text: string): string {
  const octets = new TextEncoder().encode(JSON.stringify({ manifests: text })).length
  return octets > MANIFESTS_OCTETS_MAX ? 'The manifests are longer than 1 MB.' : ''
}

/** Returns the text to confirm an order with: of a shift, its host. */
export function confirmationOfDraft({ act, selector, shift }: Draft): string {
  return act === 'shift' ? printable(shift.name.trim()) : confirmationOf(selector)
}

/**
 * Returns what an operator must type before an order is sent: the site of its selector, else the host, else all of the
 * selector.
 */
export function confirmationOf(selector: string): string {
  const terms = [...selector.matchAll(SITE)].map(([term, value = '']) => {
    return { isSite: term.trim().startsWith('site'), value: unquoted(value) }
  })
  const term = terms.find(({ isSite }) => isSite) ?? terms[0]
  return printable(term?.value ?? selector.trim())
}

function unquoted(value: string): string {
  if (!value.startsWith('"')) return value
  try {
    return String(JSON.parse(value))
  } catch {
    return value
  }
}
