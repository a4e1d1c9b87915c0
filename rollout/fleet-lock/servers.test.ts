import { describe, expect, it, onTestFinished } from 'vitest';
import { startLockService } from '../../test/fixtures/lock-service.ts';
import { deadline } from '../../test/fixtures/patience.ts';
import { fleetLockServers } from './servers.ts';

describe('a lock service', () => {
  const start = async () => {
    const service = await startLockService(1);
    onTestFinished(() => service.stop());
    const servers = fleetLockServers([service.url], {});
    const slot = (id: string) => ({ url: service.url, group: 'workers', id });
    return { service, servers, slot };
  };

  it.each([
    ['poseidon/fleetlock', 'reboot lease lock unavailable, held by another node'],
    ['airlock', 'all slots are locked already'],
  ] as const)(
    'such as %s gives a slot, again to who has it, and to another once it is given back',
    async (name, why) => {
      const { service, servers, slot } = await start();
      service.as = name;
      const within = deadline(10_000);
      expect(await servers.take(slot('a'), within)).toEqual({ kind: 'clear' });
      expect(await servers.take(slot('a'), within)).toEqual({ kind: 'clear' });
      expect(await servers.take(slot('b'), within)).toEqual({
        kind: 'holds',
        why: `${new URL(service.url).host} refuses one of group workers: ${why}`,
      });
      // It was asked for one, and has none to give back.
      await servers.giveBack(slot('b'), within);
      expect(service.held.get('workers')).toEqual(new Set(['a']));
      await servers.giveBack(slot('a'), within);
      expect(await servers.take(slot('b'), within)).toEqual({ kind: 'clear' });
      expect(service.asked.at(-1)).toBe('pre-reboot workers b');
    },
  );

  it.each([500, 404] as const)(
    'that answers %s has given nothing, and taken nothing back',
    async (status) => {
      const { service, servers, slot } = await start();
      service.answers = status;
      const why = new RegExp(`^FleetLock 127\\.0\\.0\\.1:\\d+: it answers ${status}: ""$`);
      await expect(servers.take(slot('a'), deadline(10_000))).rejects.toThrow(why);
      await expect(servers.giveBack(slot('a'), deadline(10_000))).rejects.toThrow(why);
    },
  );

  it('that nobody allowed is sent nothing', async () => {
    const { service, slot } = await start();
    const servers = fleetLockServers(['http://lock.example.com'], {});
    const why = `the operator has no --fleetlock-url ${service.url}`;
    await expect(servers.take(slot('a'), deadline(10_000))).rejects.toThrow(why);
    await expect(servers.giveBack(slot('a'), deadline(10_000))).rejects.toThrow(why);
    expect(service.asked).toEqual([]);
  });
});
