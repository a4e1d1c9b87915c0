/** Shale's version in images, rendered configs and logs; the same as in package.json. */
export const SHALE_VERSION = '0.1.0';
