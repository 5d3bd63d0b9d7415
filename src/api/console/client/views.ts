import type { ComponentType } from 'preact'
import * as act from './views/act/view.tsx'
import * as fleet from './views/fleet/view.tsx'
import * as health from './views/health/view.tsx'
import * as map from './views/map/view.tsx'
import * as overview from './views/overview/view.tsx'
import * as traffic from './views/traffic/view.tsx'
import * as why from './views/why/view.tsx'

/** One page of the console. Its state is in the parameters of the address. */
interface ViewModule {
  /** Of the parameter `view`. */
  readonly id: string
  readonly title: string
  readonly View: ComponentType
}

/** In the order of the navigation; the first one opens by default. Each folder can be deleted with its line. */
export const VIEWS: readonly ViewModule[] = [map, overview, why, health, traffic, act, fleet]
