/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "traffic/map/utm.h"

#include <math.h>

#define WGS84_A       6378137.0             /* m, radius of the equator */
#define WGS84_F       (1.0 / 298.257223563) /* flattening */
#define SCALE         0.9996                /* in the middle of a zone */
#define FALSE_EASTING 500000.0
#define PI            3.14159265358979323846

enum { ORDER = 6 };

int dt_utm_zone(double longitude)
{
    const int zone = (int)floor((longitude + 180) / 6) + 1;
    return zone < 1 ? 1 : zone > 60 ? 60 : zone;
}

void dt_utm_project(double latitude, double longitude, int zone, double xy[2])
{
    /* alpha_j of equation 35, a row each: coefficients of n^j, n^(j+1), ... n^6 */
    static const double alpha[ORDER][ORDER] = {
        {1.0 / 2, -2.0 / 3, 5.0 / 16, 41.0 / 180, -127.0 / 288, 7891.0 / 37800},
        {13.0 / 48, -3.0 / 5, 557.0 / 1440, 281.0 / 630, -1983433.0 / 1935360},
        {61.0 / 240, -103.0 / 140, 15061.0 / 26880, 167603.0 / 181440},
        {49561.0 / 161280, -179.0 / 168, 6601661.0 / 7257600},
        {34729.0 / 80640, -3418889.0 / 1995840},
        {212378941.0 / 319334400},
    };
    const double n = WGS84_F / (2 - WGS84_F), e = sqrt(WGS84_F * (2 - WGS84_F));
    const double radius = WGS84_A / (1 + n) * (1 + n * n * (1.0 / 4 + n * n * (1.0 / 64 + n * n / 256)));
    const double lambda = (longitude - (6 * zone - 183)) * PI / 180, tau = tan(latitude * PI / 180);
    /* to the conformal latitude (7 to 9), and from it on a sphere (10) */
    const double secant = hypot(1, tau), sigma = sinh(e * atanh(e * tau / secant));
    const double conformal = tau * hypot(1, sigma) - sigma * secant;
    const double xi0 = atan2(conformal, cos(lambda)), eta0 = asinh(sin(lambda) / hypot(conformal, cos(lambda)));
    double xi = xi0, eta = eta0, power = 1;
    for (int j = 1; j <= ORDER; j++) { /* (11) */
        double a = 0;
        power *= n;
        for (int k = ORDER - j; k >= 0; k--) {
            a = a * n + alpha[j - 1][k];
        }
        a *= power;
        xi += a * sin(2 * j * xi0) * cosh(2 * j * eta0);
        eta += a * cos(2 * j * xi0) * sinh(2 * j * eta0);
    }
    xy[0] = FALSE_EASTING + SCALE * radius * eta;
    xy[1] = SCALE * radius * xi;
}
