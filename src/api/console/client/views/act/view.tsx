import { useState } from 'preact/hooks'
import type { AdminDrain, AppliedDrain, DrainList } from '../../../../../plugin/admin-drains.ts'
import type { AdminSession } from '../../../../../plugin/admin-session.ts'
import type { WhatIfReply } from '../../../../../plugin/admin-what-if.ts'
import { post, remove } from '../../shell/api.ts'
import { Message } from '../../shell/message.tsx'
import { useParameters } from '../../shell/use-parameters.ts'
import { usePolled } from '../../shell/use-polled.ts'
import './act.css'
import { Confirm } from './confirm.tsx'
import { DraftForm } from './draft-form.tsx'
import { Drains } from './drains.tsx'
import { type Draft, scanAct, whatIfOf } from './order.ts'
import { Preview } from './preview.tsx'
import { Recent, type RecentAct } from './recent.tsx'
import { Session } from './session.tsx'

export const id = 'act'
export const title = 'Act'

const ACTOR = 'console'
const RECENT_MAX = 20
const SESSION_MS = 30_000

/** An order with its preview. */
interface Previewed {
  readonly draft: Draft
  readonly reply: WhatIfReply
}

/** Previews and orders drains, and previews manifests. */
export function View() {
  const { get, set } = useParameters()
  const session = usePolled<AdminSession>('/v1/session', SESSION_MS)
  const drains = usePolled<DrainList>('/v1/drains')
  const [manifests, setManifests] = useState('')
  const [previewed, setPreviewed] = useState<Previewed | undefined>(undefined)
  const [recent, setRecent] = useState<readonly RecentAct[]>([])
  const work = useWork()
  const draft: Draft = {
    act: scanAct(get('act')),
    selector: get('selector'),
    until: get('until'),
    manifests,
  }
  const change = (next: Partial<Draft>): void => {
    setPreviewed(undefined)
    if (next.manifests !== undefined) setManifests(next.manifests)
    const { act, selector, until } = { ...draft, ...next }
    set({ act, selector, until }, true)
  }
  const preview = (): Promise<void> =>
    work.run(async () => {
      const order = whatIfOf(draft)
      if (order === undefined) return 'nothing to preview'
      setPreviewed({ draft, reply: await post<WhatIfReply>('/v1/what-if', order) })
      return 'The preview is below.'
    })
  const apply = (reason: string, actor: string): Promise<void> =>
    work.run(async () => {
      const act = await send(draft, reason, actor || ACTOR, drains.data?.drains ?? [])
      setPreviewed(undefined)
      setRecent((acts) => [{ ...act, number: acts.length }, ...acts].slice(0, RECENT_MAX))
      drains.refresh()
      return `Done: ${act.text}`
    })
  const undo = (act: RecentAct): void => {
    void work.run(async () => {
      await act.undo()
      setRecent((acts) => acts.map((one) => (one === act ? { ...one, isUndone: true } : one)))
      drains.refresh()
      return `Undone: ${act.text}`
    })
  }
  const mayAct = session.data?.mayAct === true
  return (
    <>
      <Session session={session.data} />
      <DraftForm draft={draft} change={change} preview={preview} isBusy={work.isBusy} />
      <Message kind="error" text={work.error} />
      <Message kind="success" text={work.done} />
      {previewed !== undefined && (
        <section aria-label="Preview">
          <Preview {...previewed} />
          {mayAct && draft.act !== 'manifests' && (
            <Confirm draft={draft} isBusy={work.isBusy} apply={apply} />
          )}
        </section>
      )}
      <Recent acts={recent} undo={undo} />
      <Message kind="error" text={drains.error} />
      {drains.data !== undefined && (
        <Drains list={drains.data} choose={(selector) => change({ act: 'undrain', selector })} />
      )}
    </>
  )
}

/** Runs one request at a time, and keeps its outcome as a text. */
function useWork() {
  const [state, setState] = useState({ isBusy: false, error: '', done: '' })
  const run = async (work: () => Promise<string>): Promise<void> => {
    setState({ isBusy: true, error: '', done: '' })
    try {
      setState({ isBusy: false, error: '', done: await work() })
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      setState({ isBusy: false, error: text, done: '' })
    }
  }
  return { ...state, run }
}

type SentAct = Omit<RecentAct, 'number'>

/** Sends an order. Returns what was done, and how to undo it. Rejects with RequestFault. */
async function send(
  { act, selector, until }: Draft,
  reason: string,
  actor: string,
  drains: readonly AdminDrain[],
): Promise<SentAct> {
  if (act === 'undrain') return sendUndrain(idOf(selector, drains), reason, actor)
  const end = until === '' ? {} : { until }
  const order = { selector, reason, actor, ...end }
  const applied = await post<AppliedDrain>('/v1/drains', order)
  const text = `drain ${applied.selector}, ${applied.endpoints} endpoints`
  const undo = async (): Promise<void> => {
    await remove(endPath(applied.id, `undo: ${reason}`, actor))
  }
  return { text, id: applied.id, isUndone: false, undo }
}

async function sendUndrain(drainId: string, reason: string, actor: string): Promise<SentAct> {
  const path = endPath(drainId, reason, actor)
  const { drains } = await remove<{ readonly drains: readonly AdminDrain[] }>(path)
  const undo = async (): Promise<void> => {
    for (const { selector, reason: why, actor: by, until, file } of drains) {
      const end = until === undefined ? {} : { until }
      const order = { selector, reason: why, actor: by, file, allowEmpty: true, ...end }
      await post('/v1/drains', order)
    }
  }
  const text = `end of ${drains.map(({ selector }) => selector).join(', ')}`
  return { text, id: drainId, isUndone: false, undo }
}

function idOf(selector: string, drains: readonly AdminDrain[]): string {
  const wanted = selector.trim()
  const found = drains.find((drain) => drain.selector === wanted || drain.id === wanted)
  return found?.id ?? wanted
}

function endPath(drainId: string, reason: string, actor: string): string {
  return `/v1/drains?${new URLSearchParams({ id: drainId, reason: reason.slice(0, 1000), actor })}`
}
