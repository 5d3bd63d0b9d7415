import * as L from '../../zone/image/layout.ts'
import { DECLARED_NAME } from '../../zone/image/replacement.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import { keyOwner } from './canonical-key.ts'
import { type ImageSet, ZoneView } from './zone-view.ts'

/** Names between two pauses. */
const SLICE_NODES = 256

/** A change of a zone that is not published. */
interface Change {
  /** Lower-case wire form. */
  readonly owner: Uint8Array
  /** DECLARED_NAME, or the type of an RRset. */
  readonly type: number
  /** The published RRset; undefined = none, or the name was not declared. */
  readonly before: ImageSet | true | undefined
}

/**
 * Makes the content of a zone the published one again, so that its image can be published without what could not be
 * signed; pauses now and then. The zone was published before. @throws InputError if the image is full.
 */
export function* takeBack(image: ZoneImage, zone: ZoneId, apex: Uint8Array): Generator<void, void> {
  const now = ZoneView.open(image.handle, apex, image.version + 1)
  const published = ZoneView.open(image.handle, apex, image.version)
  if (now === undefined || published === undefined) return
  const changes: Change[] = []
  let seen = 0
  for (const node of now.nodes()) {
    if (++seen % SLICE_NODES === 0) yield
    const owner = keyOwner(now.keyOf(node), apex)
    const [body, old] = [now.bodyOf(node), published.find(owner)]
    if (body === old) continue
    const wasDeclared = (published.flags(old) & L.FLAG_DECLARED) !== 0
    if (((now.flags(body) & L.FLAG_DECLARED) !== 0) !== wasDeclared)
      changes.push({ owner, type: DECLARED_NAME, before: wasDeclared || undefined })
    const types = [...now.sets(body), ...published.sets(old)].map(({ type }) => type)
    for (const type of new Set(types)) {
      const before = published.set(old, type)
      if (now.set(body, type)?.place !== before?.place) changes.push({ owner, type, before })
    }
  }
  for (const [i, { owner, type, before }] of changes.entries()) {
    if (i % SLICE_NODES === 0) yield
    if (type === DECLARED_NAME) image.declareName(zone, owner, before !== undefined)
    else if (typeof before === 'object') image.putRRset(zone, owner, before)
    else image.removeRRset(zone, owner, type)
  }
  yield* image.updateChain(zone)
}
