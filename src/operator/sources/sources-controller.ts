import type { Cluster } from '../cluster/cluster.ts'
import { type Controller, type ControllerEnv, SessionController } from '../controller.ts'
import { SOURCE_STATES } from './decide-record.ts'
import { SourcesSession, type SourcesSettings, WRITE_KINDS } from './sources-session.ts'

/** Writes DNSRecords for objects of other kinds. `cluster`: of the controller that publishes DNSRecords. */
export function createSourcesController(
  env: ControllerEnv,
  cluster: Cluster,
  settings: SourcesSettings,
): Controller {
  const { registry } = env
  const records = registry.gauge(
    'sextant_operator_source_records',
    'DNSRecords of objects of other kinds, by their kind and state.',
    ['source_kind', 'state'],
  )
  const writes = registry.counter(
    'sextant_operator_source_writes_total',
    'Writes to the API for objects of other kinds.',
    ['kind'],
  )
  for (const kind of WRITE_KINDS) writes.inc({ kind }, 0)
  let session: SourcesSession | undefined
  registry.onCollect(() => {
    const counts = session?.counts()
    for (const { word } of settings.kinds) {
      for (const state of SOURCE_STATES) {
        records.set({ source_kind: word, state }, counts?.get(`${word} ${state}`) ?? 0)
      }
    }
  })
  return new SessionController(() => {
    const onWrite = (kind: string): void => writes.inc({ kind })
    session = new SourcesSession({ ...settings, env, cluster, onWrite })
    return session
  })
}
