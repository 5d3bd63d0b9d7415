import { type ApiObject, type ApiResource, textOf } from '../../kube/api.ts'
import type { EventDetails, EventSubject } from '../../kube/event-series.ts'
import { isDeleting, mappingOf } from '../record/fields.ts'

/** The DNSNameResolvers of a namespace, by the DNS name that they are for. */
export class NameObjects {
  readonly #objects = new Map<string, Map<string, ApiObject>>()

  put(object: ApiObject): void {
    const dnsName = dnsNameOf(object)
    const objects = this.#objects.get(dnsName) ?? new Map<string, ApiObject>()
    this.#objects.set(dnsName, objects.set(textOf(object.metadata, 'name'), object))
  }

  remove(object: ApiObject): void {
    const dnsName = dnsNameOf(object)
    const objects = this.#objects.get(dnsName)
    objects?.delete(textOf(object.metadata, 'name'))
    if (objects?.size === 0) this.#objects.delete(dnsName)
  }

  of(dnsName: string): readonly ApiObject[] {
    return [...(this.#objects.get(dnsName)?.values() ?? [])]
  }
}

/** `spec.name`; '' = the object has none. */
export function dnsNameOf(object: ApiObject): string {
  return textOf(mappingOf(object, 'spec'), 'name')
}

/** The object of an Event. */
export function subjectOf(
  { group, version }: ApiResource,
  kind: string,
  { metadata }: ApiObject,
): EventSubject {
  return {
    apiVersion: `${group}/${version}`,
    kind,
    namespace: textOf(metadata, 'namespace'),
    name: textOf(metadata, 'name'),
    uid: textOf(metadata, 'uid'),
  }
}

/** The Event of an invalid `spec.name`. All controllers record the same, so it is one Event. */
export function invalidName(fault: string): EventDetails {
  return {
    type: 'Warning',
    reason: 'InvalidDNSName',
    action: 'ReadName',
    note: `spec.name: ${fault}`,
  }
}

/**
 * Chooses the object that a DNS name keeps: the one that it had before (`known`, '' = none), else the
 * oldest. An object that is being deleted does not count.
 */
export function chooseObject(objects: readonly ApiObject[], known: string): ApiObject | undefined {
  const live = objects.filter((object) => !isDeleting(object))
  const named = live.find(({ metadata }) => textOf(metadata, 'name') === known)
  return named ?? live.sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))[0]
}

/** Objects of one second are in the order of their names, so that each choice is the same. */
function orderOf({ metadata }: ApiObject): string {
  return `${textOf(metadata, 'creationTimestamp')} ${textOf(metadata, 'name')}`
}
