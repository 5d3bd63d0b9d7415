import { useEffect, useState } from 'preact/hooks'
import type { AnswerMap } from '../../../../../plugin/admin-map.ts'
import type { WhatIfOrder } from '../../../../../plugin/admin-what-if.ts'
import { post } from '../../shell/api.ts'
import { Message } from '../../shell/message.tsx'
import { printable } from '../../shell/printable.ts'
import { ShownMap } from '../map/shown-map.tsx'

interface TwoMapsProps {
  readonly name: string
  readonly type: string
  readonly order: WhatIfOrder
}

/** The maps of a name before and after an order. */
export function TwoMaps({ name, type, order }: TwoMapsProps) {
  const [maps, setMaps] = useState<readonly AnswerMap[]>([])
  const [fault, setFault] = useState('')
  useEffect(() => {
    let isOver = false
    setMaps([])
    setFault('')
    const ask = async (): Promise<void> => {
      const question = { name, type }
      try {
        const before = await post<AnswerMap>('/v1/map', question)
        const after = await post<AnswerMap>('/v1/map', { ...question, ...order })
        if (!isOver) setMaps([before, after])
      } catch (error) {
        if (!isOver) setFault(error instanceof Error ? error.message : String(error))
      }
    }
    void ask()
    return () => {
      isOver = true
    }
  }, [name, type, order])
  const [before, after] = maps
  return (
    <section aria-label="Maps" aria-busy={before === undefined && fault === ''}>
      <h2>{printable(`${name} ${type}`)}</h2>
      <Message kind="error" text={fault} />
      {before !== undefined && after !== undefined && (
        <div class="two-maps">
          <section aria-label="Map now">
            <h3>Now</h3>
            <ShownMap map={before} title="now" />
          </section>
          <section aria-label="Map after it">
            <h3>After it</h3>
            <ShownMap map={after} title="after it" />
          </section>
        </div>
      )}
    </section>
  )
}
