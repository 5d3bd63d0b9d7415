import { printable } from './printable.ts'

interface MessageProps {
  readonly kind: 'info' | 'success' | 'warning' | 'error'
  /** '' = nothing to show; the region is kept, so that screen readers announce later texts. */
  readonly text: string
}

const SIGNS = { info: 'i', success: '✓', warning: '!', error: '✕' } as const

/** A text that screen readers announce when it changes. */
export function Message({ kind, text }: MessageProps) {
  return (
    <div role={kind === 'error' ? 'alert' : 'status'}>
      {text !== '' && (
        <p class={`message message-${kind}`}>
          <span class="message-sign" aria-hidden="true">
            {SIGNS[kind]}
          </span>
          {printable(text)}
        </p>
      )}
    </div>
  )
}
