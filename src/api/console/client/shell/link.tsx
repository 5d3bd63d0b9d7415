import type { ComponentChildren } from 'preact'
import { addressOf, openAddress } from './use-parameters.ts'

interface LinkProps {
  readonly view: string
  /** Parameters of the view. */
  readonly parameters?: Readonly<Record<string, string | undefined>>
  readonly isCurrent?: boolean
  readonly children: ComponentChildren
}

/** A link to a view, without loading the page again. */
export function Link({ view, parameters = {}, isCurrent = false, children }: LinkProps) {
  const address = addressOf(view, parameters)
  const open = (event: MouseEvent): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    openAddress(address)
  }
  return (
    <a href={address} aria-current={isCurrent ? 'page' : undefined} onClick={open}>
      {children}
    </a>
  )
}
