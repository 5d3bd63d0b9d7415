import { useState } from 'preact/hooks'
import type { ShiftReport } from '../../../../../base/telemetry/status.ts'
import type { DrainList } from '../../../../../plugin/admin-drains.ts'
import type { AdminSession } from '../../../../../plugin/admin-session.ts'
import type { ShiftList } from '../../../../../plugin/admin-shifts.ts'
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
import { endPath, sendOrder } from './send-order.ts'
import { Session } from './session.tsx'
import { Shifts } from './shifts.tsx'

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

/** Previews and orders drains and shifts, and previews manifests. */
export function View() {
  const session = usePolled<AdminSession>('/v1/session', SESSION_MS)
  const drains = usePolled<DrainList>('/v1/drains')
  const shifts = usePolled<ShiftList>('/v1/shifts')
  const refresh = (): void => {
    drains.refresh()
    shifts.refresh()
  }
  const [previewed, setPreviewed] = useState<Previewed | undefined>(undefined)
  const [recent, setRecent] = useState<readonly RecentAct[]>([])
  const work = useWork()
  const { draft, change } = useDraft(() => setPreviewed(undefined))
  const preview = (): Promise<void> =>
    work.run(async () => {
      const order = whatIfOf(draft)
      if (order === undefined) return 'nothing to preview'
      setPreviewed({ draft, reply: await post<WhatIfReply>('/v1/what-if', order) })
      return 'The preview is below.'
    })
  // What was previewed is sent, also if the fields have changed since.
  const apply = (sent: Draft, reason: string, actor: string): Promise<void> =>
    work.run(async () => {
      const act = await sendOrder(sent, reason, actor || ACTOR, drains.data?.drains ?? [])
      setPreviewed(undefined)
      setRecent((acts) =>
        [{ ...act, number: (acts[0]?.number ?? 0) + 1 }, ...acts].slice(0, RECENT_MAX),
      )
      refresh()
      return `Done: ${act.text}`
    })
  const undo = (act: RecentAct): void => {
    void work.run(async () => {
      await act.undo()
      setRecent((acts) => acts.map((one) => (one === act ? { ...one, isUndone: true } : one)))
      refresh()
      return `Undone: ${act.text}`
    })
  }
  const endShift = ({ order, to }: ShiftReport): void => {
    void work.run(async () => {
      await remove(endPath(order!.id, 'ended on the page', ACTOR, '/v1/shifts'))
      refresh()
      return `The shift to ${to} ends.`
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
          {mayAct && previewed.draft.act !== 'manifests' && (
            <Confirm draft={previewed.draft} isBusy={work.isBusy} apply={apply} />
          )}
        </section>
      )}
      <Recent acts={recent} undo={undo} />
      <Message kind="error" text={drains.error} />
      {drains.data !== undefined && (
        <Drains list={drains.data} choose={(selector) => change({ act: 'undrain', selector })} />
      )}
      {shifts.data !== undefined && <Shifts list={shifts.data} end={endShift} mayAct={mayAct} />}
    </>
  )
}

/** The order of the fields, which is in the address, without its manifests. `onChange`: called before a change. */
function useDraft(onChange: () => void) {
  const { get, set } = useParameters()
  const [manifests, setManifests] = useState('')
  const draft: Draft = {
    act: scanAct(get('act')),
    selector: get('selector'),
    until: get('until'),
    manifests,
    shift: {
      ...{ name: get('name'), to: get('to') },
      ...{ steps: get('steps') || '5%,25%,100%', bake: get('bake') || '10m' },
    },
  }
  const change = (next: Partial<Draft>): void => {
    onChange()
    if (next.manifests !== undefined) setManifests(next.manifests)
    const { act, selector, until, shift } = { ...draft, ...next }
    set({ act, selector, until, ...shift }, true)
  }
  return { draft, change }
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
