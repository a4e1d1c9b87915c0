/** Services of a running systemd: what a reload or restart leaves running, and how a failure is reported. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Systemctl } from '../../daemon/host/systemctl.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { bootLabMachine, FIRST_TIME_MS, type LabMachine, noLab } from './lab.ts';

/** A service of one shell command. */
const service = (start: string, more = '') => `[Service]\nExecStart=/bin/sh -c '${start}'\n${more}`;

describe.skipIf(noLab !== undefined)('services of a machine with systemd', () => {
  let machine: LabMachine;
  const signal = deadline(300_000);
  const services = () => new Systemctl(machine.run);

  beforeAll(async () => {
    machine = await bootLabMachine();
  }, patience(FIRST_TIME_MS));
  afterAll(() => machine?.[Symbol.asyncDispose]());

  it('restarts a service: another process, the same boot', async () => {
    await machine.addUnit('steady.service', service('exec sleep infinity'));
    await services().start('steady.service', signal);
    const [pid, bootID] = [await machine.property('steady.service', 'MainPID'), await machine.bootID()];
    await services().restart('steady.service', signal);
    expect(await machine.property('steady.service', 'MainPID')).not.toBe(pid);
    expect(await services().state('steady.service', signal)).toBe('active');
    expect(await machine.bootID()).toBe(bootID);
    expect(bootID).not.toBe((await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim());
  });

  it('reloads a service: the same process, by its own command', async () => {
    const reload = 'ExecReload=/bin/sh -c "touch /run/reloaded"\n';
    await machine.addUnit('reloading.service', service('exec sleep infinity', reload));
    await services().start('reloading.service', signal);
    const pid = await machine.property('reloading.service', 'MainPID');
    await services().reload('reloading.service', signal);
    expect(await machine.property('reloading.service', 'MainPID')).toBe(pid);
    expect(await machine.sh('ls /run/reloaded')).toBe('/run/reloaded');
  });

  it('says why a service that ends at once failed, with its last words', async () => {
    await machine.addUnit('broken.service', service('echo bad option on line 3; exit 7'));
    await expect(services().restart('broken.service', signal)).rejects.toThrow(
      /broken\.service: [\s\S]*bad option on line 3/,
    );
    expect(await services().state('broken.service', signal)).toBe('failed');
  });

  it('takes a service that systemd starts over and over for failed, though it is active in between', async () => {
    const again = 'Restart=always\nRestartSec=100ms\n[Unit]\nStartLimitIntervalSec=0\n';
    await machine.addUnit('looping.service', service('echo crash; sleep 0.3; exit 1', again));
    await expect(services().restart('looping.service', signal)).rejects.toThrow(
      /looping\.service[\s\S]*crash/,
    );
    await services().stop('looping.service', signal);
  });

  it('starts a service that has met its start limit once more', async () => {
    const limit = '[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=1\n';
    await machine.addUnit('limited.service', `${limit}${service('exec sleep infinity')}`);
    await services().restart('limited.service', signal);
    await expect(machine.sh('systemctl restart limited.service')).rejects.toThrow();
    expect(await machine.property('limited.service', 'Result')).toBe('start-limit-hit');
    await services().restart('limited.service', signal);
    expect(await services().state('limited.service', signal)).toBe('active');
  });

  it('gives a service that never stops no longer than the limit', async () => {
    const stubborn = 'KillSignal=SIGCONT\nTimeoutStopSec=1h\n';
    await machine.addUnit('stubborn.service', service('exec sleep infinity', stubborn));
    await services().start('stubborn.service', signal);
    const limit = AbortSignal.timeout(1_000);
    await expect(services().restart('stubborn.service', limit)).rejects.toThrow(/timeout/);
    expect(await services().state('stubborn.service', signal)).toBe('deactivating');
    await machine.sh('systemctl kill --signal=KILL stubborn.service');
  });

  it('restarts a service without a main process', async () => {
    await machine.addUnit(
      'pidless.service',
      '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n',
    );
    await services().restart('pidless.service', signal);
    expect(await machine.property('pidless.service', 'MainPID')).toBe('0');
    expect(await services().state('pidless.service', signal)).toBe('active');
  });

  it('does not start a masked service, nor one that is not there', async () => {
    await machine.addUnit('masked.service', service('exec sleep infinity'));
    await machine.sh('rm /etc/systemd/system/masked.service');
    await machine.sh('ln -s /dev/null /etc/systemd/system/masked.service');
    await services().daemonReload(signal);
    await expect(services().restart('masked.service', signal)).rejects.toThrow('unit is masked');
    await expect(services().restart('absent.service', signal)).rejects.toThrow('unit is not-found');
  });

  it('reads changed units again', async () => {
    await machine.addUnit('changing.service', service('exec sleep 1000'));
    await machine.sh('sed -i s/1000/2000/ /etc/systemd/system/changing.service');
    await services().daemonReload(signal);
    await services().start('changing.service', signal);
    const pid = await machine.property('changing.service', 'MainPID');
    expect(await machine.sh(`tr "\\0" " " < /proc/${pid}/cmdline`)).toBe('sleep 2000');
  });
});
