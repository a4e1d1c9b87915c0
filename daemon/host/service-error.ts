/** A unit couldn't be brought to the state that was asked for. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly unit: string;
  readonly action: string;

  /** @param reason what was wrong, without unit and action. */
  constructor(action: string, unit: string, reason: string, options?: ErrorOptions) {
    super(`${action} ${unit}: ${reason}`, options);
    this.unit = unit;
    this.action = action;
  }
}

/**
 * A unit name with its type (systemd.unit(5)): at most 255 characters of letters, digits, `:-_.\` and `@`. It can't begin
 * with `-`, so it is never taken for an option.
 */
const UNIT_NAME =
  /^[A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]*\.(service|socket|target|timer|path|mount|automount|swap|slice|scope|device)$/;
const MAX_UNIT_NAME = 255;

/** @throws ServiceError when the text can't be a unit's name: it may come from an image's label. */
export function assertUnitName(action: string, unit: string): void {
  if (unit.length <= MAX_UNIT_NAME && UNIT_NAME.test(unit)) return;
  throw new ServiceError(
    action,
    JSON.stringify(unit.slice(0, MAX_UNIT_NAME)),
    'not the name of a systemd unit',
  );
}
