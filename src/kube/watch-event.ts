import { ApiError, type ApiObject, isObject, textOf } from './api.ts'
import { parseJson } from './read-body.ts'

/** One change of one object. */
export interface WatchEvent {
  readonly isDeleted: boolean
  /** The current object; for a deletion its last state. */
  readonly object: ApiObject
}

/** The content of a line of a watch: an event, or only the version that the watch has reached. */
interface WatchLine {
  readonly event: WatchEvent | undefined
  readonly resourceVersion: string
  /**
   * All objects that existed at the start were sent (Kubernetes API concepts, "Streaming lists").
   */
  readonly isListEnd: boolean
}

/**
 * Parses a line of a watch. Throws ApiError for an error that the line reports, and for an invalid
 * line.
 */
export function scanWatchLine(line: string): WatchLine {
  const value = parseJson(line, 'a line of the watch')
  const type = textOf(value, 'type')
  const object = isObject(value) ? value.object : undefined
  if (type === 'ERROR') throw errorOf(object)
  const resourceVersion = isObject(object) ? textOf(object.metadata, 'resourceVersion') : ''
  if (!isObject(object) || resourceVersion === '')
    throw new ApiError(0, 'a watch event has no object')
  switch (type) {
    case 'BOOKMARK':
      return { event: undefined, resourceVersion, isListEnd: endsList(object) }
    case 'ADDED':
    case 'MODIFIED':
      return { event: { isDeleted: false, object }, resourceVersion, isListEnd: false }
    case 'DELETED':
      return { event: { isDeleted: true, object }, resourceVersion, isListEnd: false }
    default:
      throw new ApiError(
        0,
        `a watch event has the unknown type ${JSON.stringify(type.slice(0, 50))}`,
      )
  }
}

function endsList({ metadata }: ApiObject): boolean {
  const annotations = isObject(metadata) ? metadata.annotations : undefined
  return textOf(annotations, 'k8s.io/initial-events-end') === 'true'
}

function errorOf(object: ApiObject[string] | undefined): ApiError {
  const code = isObject(object) && typeof object.code === 'number' ? object.code : 0
  const message = textOf(object, 'message') || textOf(object, 'reason') || 'no reason given'
  return new ApiError(code, `${code === 0 ? '' : `${code} `}${message}`)
}
