// Where places lie on Leaflet's plane: the globe, or a picture of a certain shape.

import L from "leaflet";
import type { MapModel } from "./model";
import type { Nested, Place } from "./geometry";

/** How wide a picture is on its plane; the number matters to nobody. */
const WIDTH = 1_024;

export class Plane {
  constructor(
    readonly kind: MapModel["kind"],
    /** Width of the picture by its height. */
    readonly aspect: number,
  ) {}

  get height(): number {
    return WIDTH / this.aspect;
  }

  get bounds(): L.LatLngBounds {
    return L.latLngBounds([-this.height, 0], [0, WIDTH]);
  }

  toLatLng(place: Place): L.LatLng {
    return this.kind === "geo" ? new L.LatLng(place[0], place[1]) : new L.LatLng(-place[1] * this.height, place[0] * WIDTH);
  }

  toPlace(at: L.LatLng): Place {
    // A map of the globe goes on beyond its edges; places don't.
    const { lat, lng } = this.kind === "geo" ? at.wrap() : at;
    const round = (value: number): number => Number(value.toFixed(7));
    return this.kind === "geo" ? [round(lat), round(lng)] : [round(lng / WIDTH), round(-lat / this.height)];
  }

  toLatLngs(shape: Nested[]): L.LatLngExpression[][] {
    const convert = (one: Nested): unknown => (typeof one[0] === "number" ? this.toLatLng(one as Place) : (one as Nested[]).map(convert));
    return shape.map(convert) as L.LatLngExpression[][];
  }

  toRadius(radius: number): number {
    return this.kind === "geo" ? radius : radius * WIDTH;
  }

  fromRadius(radius: number): number {
    return this.kind === "geo" ? Math.round(radius * 100) / 100 : Number((radius / WIDTH).toFixed(7));
  }

  /** Longitude and latitude on a globe for grouping near markers; pictures are laid onto a part of it. */
  toGlobe(place: Place): [number, number] {
    const x = place[0];
    const y = place[1];
    if (this.kind === "geo") {
      return [((((y + 180) % 360) + 360) % 360) - 180, Math.max(-85, Math.min(85, x))];
    }
    const lat = (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / this.aspect))) * 180) / Math.PI;
    return [x * 360 - 180, Math.max(-85, Math.min(85, lat))];
  }

  fromGlobe(lng: number, lat: number): Place {
    if (this.kind === "geo") {
      return [lat, lng];
    }
    const radians = (lat * Math.PI) / 180;
    return [(lng + 180) / 360, (this.aspect * (1 - Math.asinh(Math.tan(radians)) / Math.PI)) / 2];
  }

  /** The zoom of the globe at which it has as many pixels as this plane has at a zoom. */
  globeZoom(zoom: number): number {
    return this.kind === "geo" ? zoom : zoom + Math.log2(WIDTH / 256);
  }
}
