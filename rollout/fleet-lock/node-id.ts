import { createHmac } from 'node:crypto';
import type { Node } from '../../api/kubernetes.ts';

/** Zincati's application ID (coreos/zincati, src/identity, APP_ID). */
const ZINCATI = Buffer.from('de35106b6ec24688b63afddaa156679b', 'hex');

/**
 * What a lock service knows a node by: the ID by which Zincati would ask on it, so that both have the same slot, and a
 * service that finds the Node of an ID finds it. It is derived from the machine ID, which must not be sent itself
 * (machine-id(5)).
 *
 * @returns the node's name, where its kubelet reports no machine ID: the protocol takes any text.
 */
export function fleetLockId({ metadata, status }: Node): string {
  const machineID = status?.nodeInfo?.machineID?.replaceAll('-', '').toLowerCase() ?? '';
  return /^[0-9a-f]{32}$/.test(machineID) ? appSpecificId(machineID) : metadata.name;
}

/** sd_id128_get_machine_app_specific(3): HMAC-SHA256, the first half of it marked as a UUID of version 4. */
function appSpecificId(machineID: string): string {
  const id = createHmac('sha256', Buffer.from(machineID, 'hex')).update(ZINCATI).digest().subarray(0, 16);
  id.writeUInt8((id.readUInt8(6) & 0x0f) | 0x40, 6);
  id.writeUInt8((id.readUInt8(8) & 0x3f) | 0x80, 8);
  return id.toString('hex');
}
