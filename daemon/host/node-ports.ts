import type { OsBackend } from '../os/backend.ts';
import type { RunCheck } from './check-runner.ts';
import type { Host, ServiceManager, SetPasswords } from './host.ts';
import type { Relabel } from './selinux-labels.ts';

/** Everything by which a daemon acts on its node. */
export interface NodePorts {
  readonly host: Host;
  readonly services: ServiceManager;
  readonly backend: OsBackend;
  readonly setPasswords: SetPasswords;
  readonly relabel: Relabel;
  readonly runCheck: RunCheck;
}
